/* Ask a model a question: hello MODEL.gguf "Why is the sky blue?" */
#include <quern.h>
#include <stdio.h>

static bool print(void *user, const char *text, size_t len)
{
    return fwrite(text, 1, len, user) == len && fflush(user) == 0;
}

int main(int argc, char **argv)
{
    qn_err err = { QN_OK, "usage: hello MODEL.gguf QUESTION" };
    qn_model *model = NULL;
    qn_engine *engine = NULL;
    qn_session *session = NULL;
    qn_sampler *sampler = NULL;
    qn_template *form = NULL;
    qn_prompt prompt = { 0 };
    int32_t ids[1024];
    size_t n = 0;
    char context[2000];
    const qn_generate_opts opts = { .size = sizeof opts, .max_tokens = 200, .on_text = print, .user = stdout };
    bool done = false;
    if (argc == 3) { /* a question with quotes or backslashes in it would have to be escaped as JSON */
        static const char form_of[] = "{\"messages\": [{\"role\": \"user\", \"content\": \"%s\"}], \"add_generation_prompt\": true}";
        const int len = snprintf(context, sizeof context, form_of, argv[2]);
        const qn_str json = { context, len < (int)sizeof context ? (size_t)len : sizeof context - 1 };
        done = !qn_model_open(&model, argv[1], NULL, &err) && !qn_engine_open(&engine, model, NULL, &err) && !qn_session_open(&session, engine, &err) &&
               !qn_sampler_open(&sampler, model, NULL, &err) && !qn_template_of_model(&form, model, &err) &&
               !qn_template_render(form, json, 0, &prompt, &err) &&
               !qn_tokenize(model, (qn_str){ prompt.text, prompt.len }, QN_TOK_PARSE, prompt.plain, prompt.n_plain, ids, 1024, &n, &err) &&
               !qn_session_generate(session, ids, (int32_t)n, sampler, &opts, NULL, &err);
    }
    if (done) putchar('\n');
    else fprintf(stderr, "%s\n", err.text);
    qn_prompt_free(&prompt);
    qn_template_close(&form);
    qn_sampler_close(&sampler);
    qn_session_close(&session);
    qn_engine_close(&engine);
    qn_model_close(&model);
    return done ? 0 : 1;
}
