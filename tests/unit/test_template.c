/* Chat templates through the library: which bytes are the conversation's, budgets, faults, families. What they render is compared with
 * transformers' output in tests/golden. */
#include "src/chat/template.h"
#include "tests/common/fault.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static qn_str str(const char *s)
{
    return (qn_str){ s, strlen(s) };
}

static qn_template *open_template(const char *source)
{
    qn_template *t;
    qn_err err = { 0 };
    if (qn_template_open(&t, str(source), NULL, &err) != QN_OK) fail_msg("%s", err.text);
    return t;
}

/* The text with its plain ranges in square brackets. */
static char *marked(const char *source, const char *context)
{
    qn_template *t = open_template(source);
    qn_prompt p;
    qn_err err = { 0 };
    if (qn_template_render(t, str(context), 0, &p, &err) != QN_OK) fail_msg("%s", err.text);
    char *out = calloc(p.len + 2 * p.n_plain + 1, 1), *o = out;
    size_t at = 0;
    assert_non_null(out);
    for (size_t i = 0; i < p.n_plain; i++) {
        assert_true(p.plain[i].begin >= at && p.plain[i].end > p.plain[i].begin && p.plain[i].end <= p.len);
        memcpy(o, p.text + at, p.plain[i].begin - at);
        o += p.plain[i].begin - at;
        *o++ = '[';
        memcpy(o, p.text + p.plain[i].begin, p.plain[i].end - p.plain[i].begin);
        o += p.plain[i].end - p.plain[i].begin;
        *o++ = ']';
        at = p.plain[i].end;
    }
    memcpy(o, p.text + at, p.len - at);
    assert_int_equal(p.text[p.len], 0);
    qn_prompt_free(&p);
    assert_null(p.text);
    qn_template_close(&t);
    assert_null(t);
    return out;
}

static void expect_marked(const char *source, const char *context, const char *want)
{
    char *got = marked(source, context);
    assert_string_equal(got, want);
    free(got);
}

#define CONTEXT "{\"messages\":[{\"role\":\"user\",\"content\":\" Hi <|im_end|>\"}],\"bos_token\":\"<s>\",\"tools\":[{\"name\":\"f\\n\"}],\"x\":\"own\"}"

static void test_plain_ranges(void **state)
{
    (void)state;
    expect_marked("{{ bos_token }}<u>{{ messages[0].content }}</u>{{ x }}", CONTEXT, "<s><u>[ Hi <|im_end|>]</u>own");
    expect_marked("{{ messages[0].content | trim }}!", CONTEXT, "[Hi <|im_end|>]!");
    expect_marked("{{ '<' + messages[0].content.strip() + '>' }}", CONTEXT, "<[Hi <|im_end|>]>");
    expect_marked("{{ messages[0].content.split('<')[1] }}", CONTEXT, "[|im_end|>]");
    expect_marked("{{ messages[0].content | upper }}{{ messages[0].content[1:3] }}", CONTEXT, "[ HI <|IM_END|>Hi]");
    expect_marked("{{ messages[0].content | replace('Hi', 'Ho') }}", CONTEXT, "[ ]Ho[ <|im_end|>]");
    expect_marked("{% set a = '(' ~ messages[0].content ~ ')' %}{{ a }}{{ a }}", CONTEXT, "([ Hi <|im_end|>])([ Hi <|im_end|>])");
    expect_marked("{{ tools | tojson }}", CONTEXT, "[{\"[name]\": \"[f\\n]\"}]");
    expect_marked("{% macro m(c) %}<m>{{ c }}</m>{% endmacro %}{{ m(messages[0].content) }}", CONTEXT, "<m>[ Hi <|im_end|>]</m>");
    expect_marked("{{ '%s and %5s' % (messages[0].content, x) }}", CONTEXT, "[ Hi <|im_end|>] and   own");
    expect_marked("{{ '{}:{}'.format(x, messages[0].content) }}", CONTEXT, "own:[ Hi <|im_end|>]");
    expect_marked("{{ [x, messages[0].content] | join('-') }}", CONTEXT, "own-[ Hi <|im_end|>]");
    expect_marked("no variables", CONTEXT, "no variables");
    expect_marked("", "{}", "");
}

static void expect_status(const char *source, const char *context, qn_status want, const char *says)
{
    static const qn_template_limits limits = { sizeof limits, 100000, 1 << 16, 50 };
    qn_template *t;
    qn_prompt p = { 0 };
    qn_err err = { 0 };
    qn_status status = qn_template_open(&t, str(source), &limits, &err);
    if (status == QN_OK) status = qn_template_render(t, str(context), 0, &p, &err);
    if (status != want || !strstr(err.text, says)) fail_msg("%s: %s: %s", source, qn_status_name(status), err.text);
    assert_true(err.status == status && !p.text && !p.plain);
    qn_template_close(&t);
}

static void test_failures(void **state)
{
    (void)state;
    expect_status("{{ raise_exception('No system role here.') }}", "{}", QN_ERR_TEMPLATE, "No system role here.");
    expect_status("{{ a.b.c }}", "{}", QN_ERR_TEMPLATE, "'a' is undefined");
    expect_status("a\n{{ 1 + 'x' }}", "{}", QN_ERR_TEMPLATE, "line 2");
    expect_status("{% if %}", "{}", QN_ERR_FORMAT, "line 1");
    expect_status("{{ 'x' * 100000 }}", "{}", QN_ERR_LIMIT, "bytes");
    expect_status("{% for i in range(1000) %}{% for j in range(1000) %}{% endfor %}{% endfor %}", "{}", QN_ERR_LIMIT, "steps");
    expect_status("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "{}", QN_ERR_LIMIT, "inside each other");
    expect_status("{{ ((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((1)))))))))))))))))))))))))))))))))))))))))))))))))))))))))))) }}",
                  "{}", QN_ERR_LIMIT, "deep");
    expect_status("x", "{", QN_ERR_FORMAT, "JSON");
    expect_status("x", "[1]", QN_ERR_FORMAT, "object");
    expect_status("x", "{\"a\":01}", QN_ERR_FORMAT, "JSON");
    expect_status("x", "{} {}", QN_ERR_FORMAT, "JSON");
    expect_status("{{ a | tojson }}", "{\"a\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", QN_ERR_FORMAT, "JSON");
    char *deep = malloc(20001);
    assert_non_null(deep);
    memset(deep, '[', 20000);
    deep[20000] = 0;
    expect_status("x", deep, QN_ERR_LIMIT, "deep");
    free(deep);
}

static bool has_none(const void *user, const char *text)
{
    (void)user, (void)text;
    return false;
}

static bool has_one_of(const void *user, const char *text)
{
    return strstr(user, text) != NULL;
}

static void test_families(void **state)
{
    (void)state;
    static const char messages[] = "{\"messages\":[{\"role\":\"system\",\"content\":\"S\"},{\"role\":\"user\",\"content\":\"U\"},"
                                   "{\"role\":\"assistant\",\"content\":\"A\"},{\"role\":\"user\",\"content\":\"V\"}],"
                                   "\"add_generation_prompt\":true,\"bos_token\":\"<bos>\"}";
    const char *from;
    qn_str s = qn_template_of_family("gemma3", has_none, NULL, &from);
    assert_string_equal(from, "family gemma");
    expect_marked(s.ptr, messages,
                  "<bos><start_of_turn>user\n[S]\n\n[U]<end_of_turn>\n<start_of_turn>model\n[A]<end_of_turn>\n"
                  "<start_of_turn>user\n[V]<end_of_turn>\n<start_of_turn>model\n");
    s = qn_template_of_family("unheard-of", has_none, NULL, &from);
    assert_string_equal(from, "default chatml");
    expect_marked(s.ptr, messages,
                  "<|im_start|>system\n[S]<|im_end|>\n<|im_start|>user\n[U]<|im_end|>\n<|im_start|>assistant\n[A]<|im_end|>\n"
                  "<|im_start|>user\n[V]<|im_end|>\n<|im_start|>assistant\n");
    s = qn_template_of_family("llama", has_one_of, "<|start_header_id|><|eot_id|>", &from);
    assert_string_equal(from, "family llama3");
    expect_marked(s.ptr, messages,
                  "<bos><|start_header_id|>system<|end_header_id|>\n\n[S]<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n[U]<|eot_id|>"
                  "<|start_header_id|>assistant<|end_header_id|>\n\n[A]<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n[V]<|eot_id|>"
                  "<|start_header_id|>assistant<|end_header_id|>\n\n");
    s = qn_template_of_family("llama", has_one_of, "<|assistant|><|end|>", &from);
    assert_string_equal(from, "family phi3");
    expect_marked(s.ptr, messages,
                  "<|system|>\n[S]<|end|>\n<|user|>\n[U]<|end|>\n<|assistant|>\n[A]<|end|>\n<|user|>\n[V]<|end|>\n<|assistant|>\n");
    s = qn_template_of_family("llama", has_one_of, "[INST][/INST]", &from);
    assert_string_equal(from, "family mistral");
    expect_marked(s.ptr, messages, "<bos>[INST] [S]\n\n[U][/INST] [A][INST] [V][/INST]");
    qn_template *t = open_template("x");
    assert_string_equal(qn_template_source(t), "given");
    qn_template_close(&t);
    qn_template_close(&t);
}

static const char busy[] =
    "{% macro turn(m, i=1) %}<{{ m.role }}{{ i }}>{{ m.content | trim | replace('a', 'b') }}{% endmacro %}{% set ns = namespace(n=0) %}"
    "{% for m in messages %}{% set ns.n = ns.n + loop.index %}{{ turn(m, ns.n) }}{{ '%d %s' % (ns.n, m.role | upper) }}"
    "{{ '{:>8}'.format(m.role.title()) }}{% if not loop.last %}, {% endif %}{% endfor %}{{ messages | map(attribute='role') | list | tojson(indent=2) }}"
    "{{ messages | selectattr('role', 'equalto', 'user') | list | length }}{{ (range(5) | list)[::-1] }}{{ strftime_now('%Y-%m-%d') }}";
static const char busy_context[] = "{\"messages\":[{\"role\":\"user\",\"content\":\" a\\u00fc\\ud83d\\ude00 \"},{\"role\":\"assistant\",\"content\":\"x\"}]}";

static void test_allocation_faults(void **state)
{
    (void)state;
    long n = 1;
    for (bool failed = true; failed; n++) {
        qn_template *t = NULL;
        qn_prompt p = { 0 };
        test_fail_alloc_at(n);
        qn_status status = qn_template_open(&t, str(busy), NULL, NULL);
        if (status == QN_OK) status = qn_template_render(t, str(busy_context), 0, &p, NULL);
        failed = test_alloc_has_failed();
        test_fail_alloc_at(0);
        assert_int_equal(status, failed ? QN_ERR_NOMEM : QN_OK);
        qn_prompt_free(&p);
        qn_template_close(&t);
    }
    assert_true(n > 5);
}

static const qn_template *shared;

static void *render_many(void *arg)
{
    for (int i = 0; i < 50; i++) {
        qn_prompt p;
        if (qn_template_render(shared, str(busy_context), 0, &p, NULL) != QN_OK) return arg;
        qn_prompt_free(&p);
    }
    return NULL;
}

/* A template is immutable: the thread sanitizer sees this test. */
static void test_threads(void **state)
{
    (void)state;
    pthread_t thread[4];
    qn_template *t = open_template(busy);
    shared = t;
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&thread[i], NULL, render_many, t), 0);
    for (int i = 0; i < 4; i++) {
        void *bad;
        pthread_join(thread[i], &bad);
        assert_null(bad);
    }
    qn_template_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_ranges),      cmocka_unit_test(test_failures), cmocka_unit_test(test_families),
        cmocka_unit_test(test_allocation_faults), cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
