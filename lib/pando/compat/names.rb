# frozen_string_literal: true

module Pando
  # What `pando init`, and the hints for users of other servers, know about these servers.
  #
  # @api private
  module Compat
    # Pando's replacements for settings and flags of Puma, Pitchfork and Unicorn: for hints in error messages, and for
    # the reasons that `pando init` gives for a line that it leaves out.
    module Names
      NOT_NEEDED = "Leave it out: the mold always loads the application before workers are forked."
      SERVICE_MANAGER = "Leave it out: a service manager such as systemd does this."
      THREADS = "Write threads N, or threads :auto."
      ALL_THREADS = "Leave it out: all threads are there from the start."
      ON_THE_COMMAND_LINE = "Give -C DIR on the command line."
      AFTER_WORKER_FORK = "Write after_worker_fork { |server, worker| ... }."
      BEFORE_WORKER_EXIT = "Write before_worker_exit { |server, worker| ... }."
      AFTER_MONITOR_READY = "Write after_monitor_ready { |server| ... }."
      OWN_SIGNALS = "Leave it out: Pando has commands of its own (pando status, pando stop, ...)."
      NO_THREADS = "Leave it out: a request has a thread of its own, and no more."
      NO_WARNING = "Leave it out: Pando has no such warning."
      KEEP_ALIVE = "Leave it out: the reactor holds idle connections, and they cost no worker."
      NO_MASTER = "Pando's monitor never loads the application: if it may run in each worker, write " \
                  "after_worker_ready { |server, worker| ... }."
      COLLECTIONS = "Leave it out: Pando collects garbage between requests (docs/sharing.md)."
      NO_TLS = "Pando speaks no TLS: let a proxy do that, and listen behind it."
      SERVICES = "A library that wants processes of its own: write service(:name) { |service| ... }, or leave it out."

      SETTINGS = {
        # Unicorn and Pitchfork
        worker_processes: "Write workers N.",
        refork_after: "Write refork after: [N, ...].",
        refork_max_unavailable: "Write rollout unavailable: N.",
        after_fork: AFTER_WORKER_FORK,
        before_worker_fork: "Write before_fork { |server| ... }.",
        before_service_worker_ready: "Write service(:name) { |service| ... }.",
        before_service_worker_exit: "Write service(:name) { |service| ... }, and after its loop what it does last.",
        client_body_buffer_size: "Write body_memory BYTES.",
        cleanup_timeout: "Write timeout SECONDS, grace: SECONDS.",
        working_directory: ON_THE_COMMAND_LINE,
        preload_app: NOT_NEEDED,
        pid: SERVICE_MANAGER,
        user: SERVICE_MANAGER,
        stderr_path: SERVICE_MANAGER,
        stdout_path: SERVICE_MANAGER,
        logger: "Write on(\"worker.ready\") { |event| ... } to send events elsewhere, or log_format :json.",
        # Puma
        bind: "Write listen \"HOST:PORT\" or listen \"unix:PATH\".",
        port: "Write listen PORT.",
        set_remote_address: "Write listen \"HOST:PORT\", proxy_protocol: true, or trusted_proxies [\"NETWORK\", ...].",
        preload_app!: NOT_NEEDED,
        fork_worker: "Write refork after: [N] or refork :auto.",
        nakayoshi_fork: NOT_NEEDED,
        daemonize: SERVICE_MANAGER,
        stdout_redirect: SERVICE_MANAGER,
        on_worker_boot: AFTER_WORKER_FORK,
        before_worker_boot: AFTER_WORKER_FORK,
        on_worker_shutdown: BEFORE_WORKER_EXIT,
        before_worker_shutdown: BEFORE_WORKER_EXIT,
        on_worker_fork: "Write before_fork { |server| ... }.",
        on_refork: "Write before_fork { |server| ... } or after_mold_fork { |server, mold| ... }.",
        before_refork: "Write before_fork { |server| ... } or after_mold_fork { |server, mold| ... }.",
        persistent_timeout: "Write idle_timeout SECONDS.",
        max_keep_alive: "Write max_keepalive_requests N.",
        bind_to_activated_sockets: "Write listen \"systemd\".",
        before_thread_start: AFTER_WORKER_FORK,
        on_thread_start: AFTER_WORKER_FORK,
        before_thread_exit: BEFORE_WORKER_EXIT,
        on_thread_exit: BEFORE_WORKER_EXIT,
        on_booted: AFTER_MONITOR_READY,
        after_booted: AFTER_MONITOR_READY,
        worker_timeout: "Write timeout SECONDS to limit each request; the monitor finds a worker that hangs by itself.",
        worker_boot_timeout: "Write spawn_timeout SECONDS.",
        worker_shutdown_timeout: "Write stop_timeout SECONDS.",
        force_shutdown_after: "Write stop_timeout SECONDS.",
        first_data_timeout: "Write header_timeout SECONDS.",
        http_content_length_limit: "Write max_body_bytes BYTES.",
        log_requests: "Write access_log :stdout, or name a file.",
        # Without an equal in Pando: Puma
        activate_control_app: OWN_SIGNALS,
        app: "Put the application into config.ru.",
        clean_thread_locals: NO_THREADS,
        debug: "Leave it out: the events on stderr say what the server does.",
        drain_on_shutdown: "Leave it out: a graceful stop always answers what clients have sent.",
        enable_keep_alives: KEEP_ALIVE,
        extra_runtime_dependencies: NOT_NEEDED,
        fiber_per_request: NO_THREADS,
        fiber_scheduler: NO_THREADS,
        io_selector_backend: "Leave it out: the reactor uses epoll.",
        load: "Write Kernel.load PATH, or put the lines here.",
        log_formatter: "Write log_format :json, or on(\"worker.ready\") { |event| ... }.",
        lowlevel_error_handler: "The application's own error pages answer; Pando answers 500, 502 or 504 without one.",
        max_fast_inline: KEEP_ALIVE,
        max_io_threads: NO_THREADS,
        max_threads: THREADS,
        min_threads: ALL_THREADS,
        mutate_stdout_and_stderr_to_sync_on_write: "Leave it out: Pando leaves stdout and stderr as they are.",
        on_restart: "Leave it out: a reload boots a new process, which inherits nothing.",
        before_restart: "Leave it out: a reload boots a new process, which inherits nothing.",
        on_stopped: NO_MASTER,
        after_stopped: NO_MASTER,
        after_worker_boot: NO_MASTER,
        out_of_band: COLLECTIONS,
        plugin: "Leave plugin :tmp_restart out: restart_file does that. For plugin :solid_queue write " \
                "node :solid_queue, queue_file: true, shared: true, require: \"./config/environment.rb\". " \
                "Others: docs/coming-from-puma.md.",
        prune_bundler: "Leave it out: the monitor runs without the bundle, and pando reload loads new gems.",
        queue_requests: KEEP_ALIVE,
        quiet: "Leave it out: Pando does not log requests.",
        raise_exception_on_sigterm: "Leave it out: TERM stops gracefully, with exit status 0.",
        reaping_time: NO_THREADS,
        restart_command: OWN_SIGNALS,
        set_default_host: "Name the host in each listen line.",
        shutdown_debug: "Leave it out: an event names what had to be killed at a stop.",
        silence_fork_callback_warning: NO_WARNING,
        silence_single_worker_warning: NO_WARNING,
        solid_queue_mode: "Leave it out: the node runs the workers of config/queue.yml in its own process.",
        ssl_bind: NO_TLS,
        state_path: OWN_SIGNALS,
        supported_http_methods: "Leave it out: the application gets every method.",
        tag: "Leave it out: each process shows its slot and generation in ps.",
        wait_for_less_busy_worker: "Leave it out: all workers take from one queue.",
        worker_check_interval: "Leave it out: the monitor sees a dead worker at once.",
        worker_culling_strategy: "Leave it out: Pando chooses the workers that leave.",
        auto_trim_time: NO_THREADS,
        # Without an equal in Pando: Unicorn and Pitchfork
        after_service_worker_ready: SERVICES,
        before_exec: "Leave it out: the workers stay when Pando itself is upgraded.",
        check_client_connection: "Leave it out: a request whose client has gone is not given to a worker.",
        default_middleware: "Leave it out: Pando adds no middleware.",
        max_consecutive_spawn_errors: "Leave it out: a worker that cannot start is tried again, later each time.",
        rewindable_input: "Leave it out: the body can be rewound, except below stream_bodies paths.",
        setpgid: "Leave it out: all processes are in the monitor's group."
      }.transform_keys(&:name).freeze

      FLAGS = {
        "-p" => "Give -l PORT.",
        "--port" => "Give -l PORT.",
        "-b" => "Give -l HOST:PORT.",
        "--bind" => "Give -l HOST:PORT.",
        "-o" => "Give -l HOST:PORT.",
        "--host" => "Give -l HOST:PORT.",
        "-E" => "Give -e ENV.",
        "--env" => "Give -e ENV.",
        "--dir" => "Give -C DIR.",
        "--preload" => NOT_NEEDED,
        "-D" => SERVICE_MANAGER,
        "-d" => SERVICE_MANAGER,
        "--daemonize" => SERVICE_MANAGER
      }.freeze

      # Commands of pumactl, and how to do the same with Pando.
      COMMANDS = {
        "restart" => "Write pando reload.",
        "phased-restart" => "Write pando reload.",
        "halt" => "Write pando stop.",
        "stats" => "Write pando status.",
        "start" => "Write pando alone: it serves."
      }.freeze

      # @return [String, nil] what to do instead
      def self.flag(name, value)
        %w[-b --bind].include?(name) && value&.start_with?("ssl://") ? NO_TLS : FLAGS[name]
      end

      # @return [String, nil] what to do instead
      def self.hint(name) = SETTINGS[name]
    end
  end
end
