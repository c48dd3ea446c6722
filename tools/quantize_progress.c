#include "quantize.h"

#include <signal.h>
#include <unistd.h>

static volatile sig_atomic_t caught;

static void on_signal(int sig)
{
    caught = sig;
}

void quantize_signals_catch(void)
{
    static const int stops[] = { SIGINT, SIGTERM, SIGHUP };
    struct sigaction a = { .sa_handler = on_signal };
    sigemptyset(&a.sa_mask);
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) sigaction(stops[i], &a, NULL);
    signal(SIGPIPE, SIG_IGN);
}

int quantize_signal(void)
{
    return caught;
}

void quantize_progress_begin(quantize_progress *p)
{
    *p = (quantize_progress){ .began = cli_now(), .shown = isatty(STDERR_FILENO) };
}

bool quantize_progress_tell(void *progress, uint64_t done, uint64_t total)
{
    enum { PER_SECOND = 10 };
    quantize_progress *p = progress;
    const double t = cli_now(), took = t - p->began;
    if (caught) return false;
    if (!p->shown || done == 0 || took <= 0 || (t - p->told < 1.0 / PER_SECOND && done < total)) return true;
    p->told = t;
    const double rate = (double)done / took, left = (double)(total - done) / rate;
    if (done == total) fprintf(stderr, "\r%-72s", "quantising 100 %, waiting for the disk");
    else fprintf(stderr, "\rquantising %3.0f %%, %.0f MB/s, %d:%02d left        ", 100.0 * (double)done / (double)total, rate / 1e6, (int)left / 60,
                 (int)left % 60);
    fflush(stderr);
    return true;
}

bool quantize_gptq_tell(void *progress, uint64_t done, uint64_t total)
{
    quantize_progress *p = progress;
    const double took = cli_now() - p->began;
    if (caught) return false;
    if (!p->shown || done == 0) return true;
    const double left = took * (double)(total - done) / (double)done;
    fprintf(stderr, "\rquantising layers on the text: %3.0f %%, %d:%02d left    ", 100.0 * (double)done / (double)total, (int)left / 60, (int)left % 60);
    fflush(stderr);
    return true;
}

void quantize_progress_end(quantize_progress *p)
{
    if (p->shown) fprintf(stderr, "\r%72s\r", "");
    p->shown = false;
}
