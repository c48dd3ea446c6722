/* Filters on text, for the table in jfilter.c. */
#ifndef QN_CHAT_JFILTER_H
#define QN_CHAT_JFILTER_H

#include "src/chat/jvm.h"

bool qn_jfilter_capitalize(qn_jvm *vm, qn_jcall *c, qn_jval *out);
bool qn_jfilter_center(qn_jvm *vm, qn_jcall *c, qn_jval *out);
bool qn_jfilter_escape(qn_jvm *vm, qn_jcall *c, qn_jval *out);
bool qn_jfilter_filesizeformat(qn_jvm *vm, qn_jcall *c, qn_jval *out);
bool qn_jfilter_forceescape(qn_jvm *vm, qn_jcall *c, qn_jval *out);
bool qn_jfilter_format(qn_jvm *vm, qn_jcall *c, qn_jval *out);
bool qn_jfilter_indent(qn_jvm *vm, qn_jcall *c, qn_jval *out);
bool qn_jfilter_lower(qn_jvm *vm, qn_jcall *c, qn_jval *out);
bool qn_jfilter_pprint(qn_jvm *vm, qn_jcall *c, qn_jval *out);
bool qn_jfilter_replace(qn_jvm *vm, qn_jcall *c, qn_jval *out);
bool qn_jfilter_safe(qn_jvm *vm, qn_jcall *c, qn_jval *out);
bool qn_jfilter_string(qn_jvm *vm, qn_jcall *c, qn_jval *out);
bool qn_jfilter_striptags(qn_jvm *vm, qn_jcall *c, qn_jval *out);
bool qn_jfilter_title(qn_jvm *vm, qn_jcall *c, qn_jval *out);
bool qn_jfilter_tojson(qn_jvm *vm, qn_jcall *c, qn_jval *out);
bool qn_jfilter_trim(qn_jvm *vm, qn_jcall *c, qn_jval *out);
bool qn_jfilter_truncate(qn_jvm *vm, qn_jcall *c, qn_jval *out);
bool qn_jfilter_upper(qn_jvm *vm, qn_jcall *c, qn_jval *out);
bool qn_jfilter_urlencode(qn_jvm *vm, qn_jcall *c, qn_jval *out);
bool qn_jfilter_wordcount(qn_jvm *vm, qn_jcall *c, qn_jval *out);
bool qn_jfilter_wordwrap(qn_jvm *vm, qn_jcall *c, qn_jval *out);
bool qn_jfilter_xmlattr(qn_jvm *vm, qn_jcall *c, qn_jval *out);

/* Shared with the methods of str. */

/** Bytes [*from, *to) of s without the characters of `chars` (NULL: white space) at its left and right side. */
void qn_js_strip(const qn_jstr *s, const qn_jstr *chars, bool left, bool right, size_t *from, size_t *to);
bool qn_js_replace(qn_jvm *vm, const qn_jstr *s, const qn_jstr *old, const qn_jstr *fresh, int64_t count, qn_jbuf *b);
/** Parts of s between `sep` (NULL: runs of white space), at most n_max cuts (-1: no limit), from the right when `back`. */
bool qn_js_split(qn_jvm *vm, const qn_jstr *s, bool markup, const qn_jstr *sep, int64_t n_max, bool back, qn_jlist *out);
bool qn_js_lines(qn_jvm *vm, const qn_jstr *s, bool markup, bool keep_ends, qn_jlist *out);
/** s within `width` characters: spaces (or `fill`) at its left, right. */
bool qn_js_pad(qn_jvm *vm, qn_jval s, int64_t left, int64_t right, const qn_jstr *fill, qn_jval *out);
bool qn_js_center(qn_jvm *vm, qn_jval s, int64_t width, const qn_jstr *fill, qn_jval *out);

#endif
