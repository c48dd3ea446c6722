/*
 * A chat in a window (GTK 3): quern-window MODEL.gguf
 *
 * The model loads on a thread of its own with a progress bar. Answers come as requests: the engine's thread hands pieces of text over to GTK's main
 * loop, so the window never waits. Stop ends an answer; what was said of it stays.
 */
#include <gtk/gtk.h>
#include <quern.h>
#include <string.h>

typedef struct app {
    GtkWidget *window, *entry, *send, *stop, *status, *bar, *list, *scroll;
    GtkWidget *answer;       /* label of the answer under way */
    GString *text;           /* its text */
    GPtrArray *turns;        /* texts: the user's and the model's by turns */
    qn_model *model;
    qn_engine *engine;
    qn_template *form;
    qn_request *request;
    char *path, *fault;
    gint percent;            /* of loading */
    gboolean closing;        /* the window is gone */
} app;

/* ---- the conversation ---- */

static void add_json(GString *out, const char *text)
{
    g_string_append_c(out, '"');
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (*p == '"' || *p == '\\') g_string_append_printf(out, "\\%c", *p);
        else if (*p < 0x20) g_string_append_printf(out, "\\u%04x", *p);
        else g_string_append_c(out, (gchar)*p);
    }
    g_string_append_c(out, '"');
}

/* Token ids of the conversation so far, for g_free. */
static int32_t *make_prompt(app *a, size_t *n, qn_err *err)
{
    GString *json = g_string_new("{\"add_generation_prompt\": true, \"tools\": null, \"documents\": null, \"messages\": [");
    qn_prompt p = { 0 };
    int32_t *ids = NULL;
    for (guint i = 0; i < a->turns->len; i++) {
        g_string_append_printf(json, "%s{\"role\": \"%s\", \"content\": ", i ? ", " : "", i % 2 ? "assistant" : "user");
        add_json(json, a->turns->pdata[i]);
        g_string_append_c(json, '}');
    }
    g_string_append(json, "]}");
    if (qn_template_render(a->form, (qn_str){ json->str, json->len }, g_get_real_time() / G_USEC_PER_SEC, &p, err) == QN_OK) {
        const size_t room = p.len + 8;
        ids = g_new(int32_t, room);
        if (qn_tokenize(a->model, (qn_str){ p.text, p.len }, QN_TOK_PARSE, p.plain, p.n_plain, ids, room, n, err) != QN_OK) g_clear_pointer(&ids, g_free);
    }
    qn_prompt_free(&p);
    g_string_free(json, TRUE);
    return ids;
}

/* ---- what is shown ---- */

static GtkWidget *add_bubble(app *a, const char *text, gboolean is_user)
{
    GtkWidget *label = gtk_label_new(text);
    gtk_label_set_line_wrap(GTK_LABEL(label), TRUE);
    gtk_label_set_line_wrap_mode(GTK_LABEL(label), PANGO_WRAP_WORD_CHAR);
    gtk_label_set_selectable(GTK_LABEL(label), TRUE);
    gtk_label_set_xalign(GTK_LABEL(label), 0);
    gtk_label_set_max_width_chars(GTK_LABEL(label), 60);
    gtk_widget_set_halign(label, is_user ? GTK_ALIGN_END : GTK_ALIGN_START);
    gtk_style_context_add_class(gtk_widget_get_style_context(label), is_user ? "user" : "model");
    gtk_box_pack_start(GTK_BOX(a->list), label, FALSE, FALSE, 0);
    gtk_widget_show(label);
    return label;
}

static void set_busy(app *a, gboolean busy)
{
    gtk_widget_set_sensitive(a->entry, !busy);
    gtk_widget_set_sensitive(a->send, !busy);
    gtk_widget_set_sensitive(a->stop, busy);
    if (!busy) gtk_widget_grab_focus(a->entry);
}

static void set_status(app *a, const char *text)
{
    gtk_label_set_text(GTK_LABEL(a->status), text);
}

static void on_grown(GtkWidget *w, GdkRectangle *area, gpointer user)
{
    GtkAdjustment *v = gtk_scrolled_window_get_vadjustment(GTK_SCROLLED_WINDOW(((app *)user)->scroll));
    (void)w;
    (void)area;
    gtk_adjustment_set_value(v, gtk_adjustment_get_upper(v));
}

/* ---- from the engine's thread to GTK's ---- */

typedef struct piece {
    app *a;
    char *text;              /* NULL: the answer has ended */
    qn_generate_result result;
    char fault[500];
} piece;

static void end_answer(piece *p)
{
    app *a = p->a;
    char line[200];
    const qn_generate_result *r = &p->result;
    qn_request_close(&a->request);
    g_ptr_array_add(a->turns, g_strdup(a->text->str));
    snprintf(line, sizeof line, "%d tokens, %.1f a second; first after %.2f s; prompt %d tokens, %d of them cached%s", r->n_generated,
             r->generate_seconds > 0 ? (r->n_generated - 1) / r->generate_seconds : 0, r->first_token_seconds, r->n_prompt, r->n_cached,
             r->finish == QN_FINISH_CANCELLED ? "; stopped" : r->finish == QN_FINISH_LENGTH ? "; the context is full" : "");
    set_status(a, p->fault[0] ? p->fault : line);
    set_busy(a, FALSE);
}

static gboolean take_piece(gpointer user)
{
    piece *p = user;
    if (!p->a->closing && p->text) {
        g_string_append(p->a->text, p->text);
        gtk_label_set_text(GTK_LABEL(p->a->answer), p->a->text->str);
    } else if (!p->a->closing) {
        end_answer(p);
    }
    g_free(p->text);
    g_free(p);
    return G_SOURCE_REMOVE;
}

static bool on_text(void *user, int32_t i_choice, const char *text, size_t len)
{
    piece *p = g_new0(piece, 1);
    (void)i_choice;
    p->a = user;
    p->text = g_strndup(text, len);
    g_idle_add(take_piece, p);
    return true;
}

static void on_end(void *user, int32_t i_choice, const qn_generate_result *result, const qn_err *err)
{
    piece *p = g_new0(piece, 1);
    (void)i_choice;
    p->a = user;
    p->result = *result;
    if (err) g_strlcpy(p->fault, err->text, sizeof p->fault);
    g_idle_add(take_piece, p);
}

/* ---- what the user does ---- */

static void on_send(GtkWidget *w, gpointer user)
{
    app *a = user;
    qn_err err = { 0 };
    size_t n = 0;
    const char *said = gtk_entry_get_text(GTK_ENTRY(a->entry));
    (void)w;
    if (!*said || a->request || !a->engine) return;
    g_ptr_array_add(a->turns, g_strdup(said));
    int32_t *ids = make_prompt(a, &n, &err);
    qn_sample_opts sampling;
    qn_sample_opts_init(&sampling);
    sampling.temperature = 0.2f; /* small models wander off at more */
    sampling.seed = QN_SEED_RANDOM;
    const qn_request_opts o = {
        .size = sizeof o, .prompt = ids, .n_prompt = (int32_t)n, .sampling = &sampling, .on_text = on_text, .on_end = on_end, .user = a,
    };
    if (!ids || qn_engine_submit(a->engine, &o, &a->request, &err) != QN_OK) {
        g_ptr_array_remove_index(a->turns, a->turns->len - 1);
        set_status(a, err.text);
    } else {
        add_bubble(a, said, TRUE);
        a->answer = add_bubble(a, "\u2026", FALSE);
        g_string_truncate(a->text, 0);
        gtk_entry_set_text(GTK_ENTRY(a->entry), "");
        set_status(a, "\u2026");
        set_busy(a, TRUE);
    }
    g_free(ids);
}

static void on_stop(GtkWidget *w, gpointer user)
{
    (void)w;
    if (((app *)user)->request) qn_request_cancel(((app *)user)->request);
}

static void on_destroy(GtkWidget *w, gpointer user)
{
    (void)w;
    ((app *)user)->closing = TRUE;
    gtk_main_quit();
}

/* ---- loading ---- */

static bool on_progress(void *user, uint64_t done, uint64_t total)
{
    app *a = user;
    g_atomic_int_set(&a->percent, total ? (gint)(100 * done / total) : 0);
    return !a->closing;
}

static gpointer load(gpointer user)
{
    app *a = user;
    qn_err err = { 0 };
    const qn_model_opts o = { .size = sizeof o, .progress = on_progress, .progress_user = a };
    if (qn_model_open(&a->model, a->path, &o, &err) || qn_template_of_model(&a->form, a->model, &err) || qn_engine_open(&a->engine, a->model, NULL, &err))
        a->fault = g_strdup(err.text);
    g_atomic_int_set(&a->percent, 101);
    return NULL;
}

static gboolean watch_load(gpointer user)
{
    app *a = user;
    const gint percent = g_atomic_int_get(&a->percent);
    char line[200];
    if (a->closing) return G_SOURCE_REMOVE;
    if (percent <= 100) {
        gtk_progress_bar_set_fraction(GTK_PROGRESS_BAR(a->bar), percent / 100.0);
        return G_SOURCE_CONTINUE;
    }
    gtk_widget_hide(a->bar);
    if (a->fault) {
        set_status(a, a->fault);
        return G_SOURCE_REMOVE;
    }
    qn_engine_info e;
    qn_model_info m;
    qn_engine_get_info(a->engine, &e);
    qn_model_get_info(a->model, &m);
    snprintf(line, sizeof line, "%s, %.0f M parameters, context %d, %d threads, %s", *m.name ? m.name : m.arch, (double)m.n_params / 1e6, e.n_ctx,
             e.n_threads, e.cpu);
    set_status(a, line);
    set_busy(a, FALSE);
    return G_SOURCE_REMOVE;
}

/* ---- the window ---- */

static void build(app *a)
{
    static const char css[] =
        ".user, .model { padding: 8px 12px; border-radius: 12px; } "
        ".user { background: #2a6fb5; color: white; } .model { background: #e9ebee; color: #202226; } "
        "viewport { background: white; } .note { color: #666a70; font-size: 85%; }";
    GtkCssProvider *style = gtk_css_provider_new();
    GtkWidget *all = gtk_box_new(GTK_ORIENTATION_VERTICAL, 6), *row = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 6);
    gtk_css_provider_load_from_data(style, css, -1, NULL);
    gtk_style_context_add_provider_for_screen(gdk_screen_get_default(), GTK_STYLE_PROVIDER(style), GTK_STYLE_PROVIDER_PRIORITY_APPLICATION);
    a->window = gtk_window_new(GTK_WINDOW_TOPLEVEL);
    gtk_window_set_title(GTK_WINDOW(a->window), "quern");
    gtk_window_set_default_size(GTK_WINDOW(a->window), 640, 520);
    gtk_container_set_border_width(GTK_CONTAINER(a->window), 8);
    a->scroll = gtk_scrolled_window_new(NULL, NULL);
    gtk_scrolled_window_set_policy(GTK_SCROLLED_WINDOW(a->scroll), GTK_POLICY_NEVER, GTK_POLICY_AUTOMATIC);
    a->list = gtk_box_new(GTK_ORIENTATION_VERTICAL, 8);
    g_object_set(a->list, "margin", 10, NULL);
    gtk_container_add(GTK_CONTAINER(a->scroll), a->list);
    a->entry = gtk_entry_new();
    gtk_entry_set_placeholder_text(GTK_ENTRY(a->entry), "Say something");
    a->send = gtk_button_new_with_label("Send");
    a->stop = gtk_button_new_with_label("Stop");
    a->status = gtk_label_new("loading\u2026");
    a->bar = gtk_progress_bar_new();
    gtk_label_set_xalign(GTK_LABEL(a->status), 0);
    gtk_label_set_line_wrap(GTK_LABEL(a->status), TRUE);
    gtk_style_context_add_class(gtk_widget_get_style_context(a->status), "note");
    gtk_box_pack_start(GTK_BOX(row), a->entry, TRUE, TRUE, 0);
    gtk_box_pack_start(GTK_BOX(row), a->send, FALSE, FALSE, 0);
    gtk_box_pack_start(GTK_BOX(row), a->stop, FALSE, FALSE, 0);
    gtk_box_pack_start(GTK_BOX(all), a->scroll, TRUE, TRUE, 0);
    gtk_box_pack_start(GTK_BOX(all), row, FALSE, FALSE, 0);
    gtk_box_pack_start(GTK_BOX(all), a->bar, FALSE, FALSE, 0);
    gtk_box_pack_start(GTK_BOX(all), a->status, FALSE, FALSE, 0);
    gtk_container_add(GTK_CONTAINER(a->window), all);
    g_signal_connect(a->entry, "activate", G_CALLBACK(on_send), a);
    g_signal_connect(a->send, "clicked", G_CALLBACK(on_send), a);
    g_signal_connect(a->stop, "clicked", G_CALLBACK(on_stop), a);
    g_signal_connect(a->list, "size-allocate", G_CALLBACK(on_grown), a);
    g_signal_connect(a->window, "destroy", G_CALLBACK(on_destroy), a);
    gtk_widget_show_all(a->window);
}

int main(int argc, char **argv)
{
    app a = { .text = g_string_new(""), .turns = g_ptr_array_new_with_free_func(g_free) };
    gtk_init(&argc, &argv);
    if (argc != 2) {
        g_printerr("usage: quern-window MODEL.gguf\n");
        return 2;
    }
    a.path = argv[1];
    build(&a);
    set_busy(&a, TRUE);
    gtk_widget_set_sensitive(a.stop, FALSE);
    GThread *loader = g_thread_new("load", load, &a);
    g_timeout_add(50, watch_load, &a);
    gtk_main();
    g_thread_join(loader);
    qn_request_close(&a.request);
    while (g_main_context_iteration(NULL, FALSE)) continue; /* pieces that were on their way */
    qn_engine_close(&a.engine);
    qn_template_close(&a.form);
    qn_model_close(&a.model);
    g_ptr_array_free(a.turns, TRUE);
    g_string_free(a.text, TRUE);
    g_free(a.fault);
    return 0;
}
