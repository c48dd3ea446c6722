/* What a file that is not a GGUF looks like: people save web pages, pointers and other formats under the name of a model. */
#include "src/format/gguf.h"

#include <string.h>
#include <strings.h>

#define PREFIX(s) s, sizeof(s) - 1

static const struct {
    const char *bytes;
    size_t n;
    const char *look;
} looks[] = {
    { PREFIX("version https://git-lfs"),
      "a Git LFS pointer (a small text that stands for the model; fetch the file itself with 'git lfs pull')" },
    { PREFIX("FUGG"), "a big-endian GGUF, which quern does not read" },
    { PREFIX("lmgg"), "a model in the GGML format from before GGUF; convert it again from the original" },
    { PREFIX("fmgg"), "a model in the GGMF format from before GGUF; convert it again from the original" },
    { PREFIX("tjgg"), "a model in the GGJT format from before GGUF; convert it again from the original" },
    { PREFIX("algg"), "a LoRA adapter in the format from before GGUF" },
    { PREFIX("PK\3\4"), "a ZIP archive (a PyTorch file or a packed download); unpack or convert it" },
    { PREFIX("\x1f\x8b"), "a file packed by gzip; unpack it" },
    { PREFIX("\x28\xb5\x2f\xfd"), "a file packed by zstd; unpack it" },
    { PREFIX("\xfd" "7zXZ"), "a file packed by xz; unpack it" },
    { PREFIX("BZh"), "a file packed by bzip2; unpack it" },
    { PREFIX("7z\xbc\xaf"), "a 7z archive; unpack it" },
    { PREFIX("\x89HDF"), "an HDF5 file" },
    { PREFIX("\x93NUMPY"), "a NumPy array" },
    { PREFIX("\x80\x02"), "a Python pickle (an old PyTorch file)" },
    { PREFIX("\x80\x04"), "a Python pickle (an old PyTorch file)" },
    { PREFIX("\x7f" "ELF"), "a program" },
    { PREFIX("%PDF"), "a PDF document" },
};

/* The head of a safetensors file: the length of the JSON header, and the header. */
static bool is_safetensors(const uint8_t *p, size_t n)
{
    return n > 9 && p[8] == '{' && p[4] == 0 && p[5] == 0 && p[6] == 0 && p[7] == 0;
}

static bool is_all(const uint8_t *p, size_t n, uint8_t value)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] != value) return false;
    return true;
}

static bool is_text(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((p[i] < 0x20 && !(p[i] >= '\t' && p[i] <= '\r')) || p[i] == 0x7f) return false;
    return true;
}

const char *qn_sniff(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++)
        if (n >= looks[i].n && !memcmp(p, looks[i].bytes, looks[i].n)) return looks[i].look;
    if (is_safetensors(p, n)) return "a safetensors file; convert it to GGUF";
    const size_t head = n < 64 ? n : 64;
    if (is_all(p, head, 0)) return "zeros: a download that was interrupted, perhaps";
    size_t i = n >= 3 && !memcmp(p, "\xef\xbb\xbf", 3) ? 3 : 0;
    while (i < n && i < 256 && (p[i] == ' ' || (p[i] >= '\t' && p[i] <= '\r'))) i++;
    const char *text = (const char *)p + i;
    const size_t left = n - i;
    if ((left >= 9 && !strncasecmp(text, "<!doctype", 9)) || (left >= 5 && !strncasecmp(text, "<html", 5)) ||
        (left >= 5 && !strncasecmp(text, "<head", 5)))
        return "an HTML page (the download gave a web page in place of the model)";
    if (left && is_text(p, head)) {
        if (*text == '{' || *text == '[') return "a JSON text (an error message of the download, perhaps)";
        if (*text == '<') return "an XML or HTML text (an error message of the download, perhaps)";
        return "a text file";
    }
    return NULL;
}
