/* Bytes as text: GPT-2's alphabet, and the names "<0xHH>". */
#include "src/token/vocab.h"

/* Printable bytes stand for themselves; the other 68 are U+0100 and on, in order. */
static bool is_itself(uint32_t b)
{
    return (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || (b >= 0xae && b <= 0xff);
}

uint32_t qn_byte_to_alpha(unsigned char byte)
{
    if (is_itself(byte)) return byte;
    /* the others before it: 0 .. 32, 127 .. 160, 173 */
    return 0x100u + (byte <= 32 ? byte : byte <= 160 ? 33u + (byte - 127u) : 67u);
}

int32_t qn_alpha_to_byte(uint32_t cp)
{
    if (cp < 0x100) return is_itself(cp) ? (int32_t)cp : -1;
    if (cp >= 0x144) return -1;
    const int32_t k = (int32_t)cp - 0x100;
    return k <= 32 ? k : k <= 66 ? k - 33 + 127 : 173;
}

static int32_t hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int32_t qn_byte_token_value(qn_str t)
{
    if (t.len != 6 || t.ptr[0] != '<' || t.ptr[1] != '0' || t.ptr[2] != 'x' || t.ptr[5] != '>') return -1;
    const int32_t hi = hex(t.ptr[3]), lo = hex(t.ptr[4]);
    return hi < 0 || lo < 0 ? -1 : hi * 16 + lo;
}

void qn_vocab_byte(const qn_vocab *v, unsigned char byte, qn_ids *out)
{
    const int32_t id = v->byte_id[byte] >= 0 ? v->byte_id[byte] : v->role[QN_ROLE_UNK];
    if (id >= 0) qn_ids_add(out, id);
}
