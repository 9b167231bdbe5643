/* The CPU executor: one process-wide pool of worker threads.
 *
 * A job is open while it has tasks left. Its state is one word: a generation, an open bit, and the
 * number of workers inside. A worker enters with a compare-and-swap that fails once the job is
 * closed, so the caller waits only for workers that did start, never for one still asleep. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "native.h"

#include <pthread.h>
#include <signal.h>

#define OPEN ((uint64_t)1 << 16)
#define ACTIVE (OPEN - 1)
#define GENERATION ((uint64_t)1 << 17)
/* A few tens of microseconds: the gap between two kernels of one program. */
#define SPINS 2000

typedef void (*Body)(void* context, int64_t task);

static void run(fkl_executor* self, Body body, void* context, int64_t tasks);

static fkl_executor executor = {.abi = 1, .threads = 1, .run = run};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t work;     /* a job was opened */
    pthread_cond_t finished; /* the last worker has left a closed job */
    uint64_t state;          /* atomic */
    int64_t next;            /* atomic: the next task to draw */
    int64_t tasks;
    Body body;
    void* context;
    uint64_t limit;   /* atomic: how many workers may enter the job */
    int32_t sleepers; /* atomic: workers waiting for work */
    int32_t workers;  /* atomic */
    int32_t waiting;  /* atomic: the caller sleeps until the workers have left */
    char busy;        /* atomic: a job is running */
} pool = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .work = PTHREAD_COND_INITIALIZER,
    .finished = PTHREAD_COND_INITIALIZER,
};

static _Thread_local int inside_worker;

static void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void before_fork(void) { pthread_mutex_lock(&pool.lock); }
static void after_fork_in_parent(void) { pthread_mutex_unlock(&pool.lock); }

/* The child has this thread alone: it starts without workers and builds its own when needed. */
static void after_fork_in_child(void) {
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.work, NULL);
    pthread_cond_init(&pool.finished, NULL);
    pool.state &= ~(OPEN | ACTIVE);
    pool.sleepers = 0;
    pool.workers = 0;
    pool.waiting = 0;
    pool.busy = 0;
    inside_worker = 0;
}

__attribute__((constructor)) static void prepare_thread_pool(void) {
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

static void draw_tasks(Body body, void* context, int64_t tasks) {
    for (;;) {
        const int64_t task = __atomic_fetch_add(&pool.next, 1, __ATOMIC_RELAXED);
        if (task >= tasks) return;
        body(context, task);
    }
}

static int is_new(uint64_t state, uint64_t seen) {
    return (state & OPEN) != 0 && state / GENERATION != seen;
}

/* Waits for a job of another generation than the one seen last; its state. */
static uint64_t wait_for_work(uint64_t seen) {
    for (int spin = 0; spin < SPINS; ++spin) {
        const uint64_t state = __atomic_load_n(&pool.state, __ATOMIC_SEQ_CST);
        if (is_new(state, seen)) return state;
        relax();
    }
    pthread_mutex_lock(&pool.lock);
    __atomic_fetch_add(&pool.sleepers, 1, __ATOMIC_SEQ_CST);
    uint64_t state = __atomic_load_n(&pool.state, __ATOMIC_SEQ_CST);
    while (!is_new(state, seen)) {
        pthread_cond_wait(&pool.work, &pool.lock);
        state = __atomic_load_n(&pool.state, __ATOMIC_SEQ_CST);
    }
    __atomic_fetch_sub(&pool.sleepers, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&pool.lock);
    return state;
}

static void leave_job(void) {
    const uint64_t state = __atomic_sub_fetch(&pool.state, 1, __ATOMIC_SEQ_CST);
    if ((state & (OPEN | ACTIVE)) != 0) return;
    if (__atomic_load_n(&pool.waiting, __ATOMIC_SEQ_CST) == 0) return;
    pthread_mutex_lock(&pool.lock);
    pthread_cond_signal(&pool.finished);
    pthread_mutex_unlock(&pool.lock);
}

static void* worker(void* unused) {
    uint64_t seen = UINT64_MAX;
    (void)unused;
    inside_worker = 1;
    for (;;) {
        uint64_t state = wait_for_work(seen);
        int entered = 0;
        seen = state / GENERATION;
        while (!entered && (state & OPEN) != 0 && state / GENERATION == seen &&
               (state & ACTIVE) < __atomic_load_n(&pool.limit, __ATOMIC_RELAXED)) {
            entered = __atomic_compare_exchange_n(&pool.state, &state, state + 1, 0,
                                                  __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
        }
        if (!entered) continue;
        draw_tasks(pool.body, pool.context, pool.tasks);
        leave_job();
    }
    return NULL;
}

/* Signals are for the program's own threads: a worker starts with every one blocked. */
static void start_workers(int32_t wanted) {
    sigset_t all, before;
    if (__atomic_load_n(&pool.workers, __ATOMIC_RELAXED) >= wanted) return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (pool.workers < wanted) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, worker, NULL) != 0) break; /* fewer will do */
        pthread_detach(thread);
        __atomic_fetch_add(&pool.workers, 1, __ATOMIC_RELAXED);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void open_job(Body body, void* context, int64_t tasks, int32_t helpers) {
    pool.body = body;
    pool.context = context;
    pool.tasks = tasks;
    __atomic_store_n(&pool.next, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&pool.limit, (uint64_t)helpers, __ATOMIC_RELAXED);
    const uint64_t state = __atomic_load_n(&pool.state, __ATOMIC_RELAXED);
    __atomic_store_n(&pool.state, (state / GENERATION + 1) * GENERATION | OPEN, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&pool.sleepers, __ATOMIC_SEQ_CST) == 0) return;
    pthread_mutex_lock(&pool.lock);
    if (helpers < pool.sleepers) {
        for (int32_t i = 0; i < helpers; ++i) pthread_cond_signal(&pool.work);
    } else {
        pthread_cond_broadcast(&pool.work);
    }
    pthread_mutex_unlock(&pool.lock);
}

static void close_job(void) {
    __atomic_fetch_and(&pool.state, ~OPEN, __ATOMIC_SEQ_CST);
    for (int spin = 0; spin < SPINS; ++spin) {
        if ((__atomic_load_n(&pool.state, __ATOMIC_SEQ_CST) & ACTIVE) == 0) return;
        relax();
    }
    pthread_mutex_lock(&pool.lock);
    __atomic_store_n(&pool.waiting, 1, __ATOMIC_SEQ_CST);
    while ((__atomic_load_n(&pool.state, __ATOMIC_SEQ_CST) & ACTIVE) != 0) {
        pthread_cond_wait(&pool.finished, &pool.lock);
    }
    __atomic_store_n(&pool.waiting, 0, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&pool.lock);
}

static void run(fkl_executor* self, Body body, void* context, int64_t tasks) {
    int32_t helpers = __atomic_load_n(&self->threads, __ATOMIC_RELAXED) - 1;
    if (tasks - 1 < helpers) helpers = (int32_t)(tasks - 1);
    /* A nested run, or one while another thread has the pool, is serial: nobody ever waits. */
    if (helpers < 1 || inside_worker || __atomic_test_and_set(&pool.busy, __ATOMIC_ACQUIRE)) {
        for (int64_t task = 0; task < tasks; ++task) body(context, task);
        return;
    }
    start_workers(helpers);
    open_job(body, context, tasks, helpers);
    draw_tasks(body, context, tasks);
    close_job();
    __atomic_clear(&pool.busy, __ATOMIC_RELEASE);
}

fkl_executor* fkl_executor_instance(void) { return &executor; }

/* Exported: threadpoolctl knows the library by it. */
__attribute__((visibility("default"))) void fkl_executor_set_threads(int32_t threads) {
    __atomic_store_n(&executor.threads, threads, __ATOMIC_RELAXED);
}

int32_t fkl_executor_workers(void) { return __atomic_load_n(&pool.workers, __ATOMIC_RELAXED); }
