# frozen_string_literal: true

require "pando/compat/solid_queue"

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
      ALL_THREADS = "Leave it out: all threads are there from the start."
      ON_THE_COMMAND_LINE = "Give -C DIR on the command line."
      NO_MASTER = "Pando's monitor never loads the application: if it may run in each worker, write " \
                  "after_worker_ready { |server, worker| ... }."
      NO_TLS = "Pando speaks no TLS: let a proxy do that, and listen behind it."

      # Settings that differ only in name: what Pando's line begins with, and its value.
      RENAMED = {
        client_body_buffer_size: %w[body_memory BYTES], refork_after: ["refork after:", "[N, ...]"],
        refork_max_unavailable: ["rollout unavailable:", "N"], persistent_timeout: %w[idle_timeout SECONDS],
        max_keep_alive: %w[max_keepalive_requests N], worker_boot_timeout: %w[spawn_timeout SECONDS],
        worker_shutdown_timeout: %w[stop_timeout SECONDS], first_data_timeout: %w[header_timeout SECONDS],
        http_content_length_limit: %w[max_body_bytes BYTES]
      }.transform_keys(&:name).freeze

      # Replacements of several settings.
      SEVERAL = {
        "Write after_worker_fork { |server, worker| ... }." =>
          %w[after_fork on_worker_boot before_worker_boot before_thread_start on_thread_start],
        "Write before_worker_exit { |server, worker| ... }." =>
          %w[on_worker_shutdown before_worker_shutdown before_thread_exit on_thread_exit],
        "Write after_worker_exit { |server, worker, ending| ... }." => %w[after_worker_shutdown],
        "Write before_fork { |server| ... }." => %w[before_worker_fork on_worker_fork],
        "Write before_fork { |server| ... } or after_mold_fork { |server, mold| ... }." => %w[on_refork before_refork],
        "Write after_monitor_ready { |server| ... }." => %w[on_booted after_booted],
        "Leave it out: a reload boots a new process, which inherits nothing." => %w[on_restart before_restart],
        NO_MASTER => %w[on_stopped after_stopped after_worker_boot],
        NOT_NEEDED => %w[preload_app preload_app! nakayoshi_fork extra_runtime_dependencies],
        SERVICE_MANAGER => %w[pid user stderr_path stdout_path daemonize stdout_redirect],
        "Leave it out: Pando has commands of its own (pando status, pando stop, ...)." =>
          %w[activate_control_app restart_command state_path state_permission],
        "Leave it out: a request has a thread of its own, and no more." =>
          %w[clean_thread_locals fiber_per_request fiber_scheduler max_io_threads reaping_time auto_trim_time],
        "Write on(\"worker.ready\") { |event| ... } to send events elsewhere, or log_format :json." =>
          %w[logger custom_logger],
        "Leave it out: Pando has no such warning." => %w[silence_fork_callback_warning silence_single_worker_warning],
        "Leave it out: the reactor holds idle connections, and they cost no worker." =>
          %w[enable_keep_alives max_fast_inline queue_requests]
      }.freeze

      SETTINGS = {
        # Unicorn and Pitchfork
        worker_processes: "Write workers N.",
        before_service_worker_ready: "Write service(:name) { |service| ... }.",
        before_service_worker_exit: "Write service(:name) { |service| ... }, and after its loop what it does last.",
        cleanup_timeout: "Write timeout SECONDS, grace: SECONDS.",
        working_directory: ON_THE_COMMAND_LINE,
        # Puma
        bind: "Write listen \"HOST:PORT\" or listen \"unix:PATH\".",
        port: "Write listen PORT.",
        set_remote_address: "Write listen \"HOST:PORT\", proxy_protocol: true, or trusted_proxies [\"NETWORK\", ...].",
        fork_worker: "Write refork after: [N] or refork :auto.",
        bind_to_activated_sockets: "Write listen \"systemd\".",
        worker_timeout: "Write timeout SECONDS to limit each request; the monitor finds a worker that hangs by itself.",
        force_shutdown_after: "Write stop_timeout SECONDS.",
        log_requests: "Write access_log :stdout, or name a file.",
        # Without an equal in Pando: Puma
        after_refork: "A library that must act after a fork registers parent: itself: see docs/fork-hooks.md.",
        app: "Put the application into config.ru.",
        clear_binds!: "Remove the listen lines that it is to undo.",
        cluster: "Leave it out, and write the lines of its block.",
        debug: "Leave it out: the events on stderr say what the server does.",
        drain_on_shutdown: "Leave it out: a graceful stop always answers what clients have sent.",
        io_selector_backend: "Leave it out: the reactor uses epoll.",
        load: "Write Kernel.load PATH, or put the lines here.",
        log_formatter: "Write log_format :json, or on(\"worker.ready\") { |event| ... }.",
        lowlevel_error_handler: "The application's own error pages answer; Pando answers 500, 502 or 504 without one.",
        max_threads: "Write threads N, or threads :auto.",
        min_threads: ALL_THREADS,
        mutate_stdout_and_stderr_to_sync_on_write: "Leave it out: Pando leaves stdout and stderr as they are.",
        out_of_band: "Leave it out: Pando collects garbage between requests (docs/sharing.md).",
        plugin: "Leave plugin :tmp_restart out: restart_file does that. For plugin :solid_queue write " \
                "#{SolidQueue::LINE}. " \
                "Others: docs/coming-from-puma.md.",
        prune_bundler: "Leave it out: the monitor runs without the bundle, and pando reload loads new gems.",
        quiet: "Leave it out: Pando does not log requests.",
        rack_url_scheme: "Let the proxy send X-Forwarded-Proto, and name it in trusted_proxies.",
        raise_exception_on_sigterm: "Leave it out: TERM stops gracefully, with exit status 0.",
        set_default_host: "Name the host in each listen line.",
        shutdown_debug: "Leave it out: an event names what had to be killed at a stop.",
        single: "Leave it out: the server always has workers.",
        solid_queue_mode: "Leave it out: the node runs the workers of config/queue.yml in its own process.",
        ssl_bind: NO_TLS,
        supported_http_methods: "Leave it out: the application gets every method.",
        tag: "Leave it out: each process shows its slot and generation in ps.",
        wait_for_less_busy_worker: "Leave it out: all workers take from one queue.",
        worker_check_interval: "Leave it out: the monitor sees a dead worker at once.",
        worker_culling_strategy: "Leave it out: Pando chooses the workers that leave.",
        # Without an equal in Pando: Unicorn and Pitchfork
        after_service_worker_ready: "A library that wants processes of its own: write service(:name) " \
                                    "{ |service| ... }, or leave it out.",
        before_exec: "Leave it out: the workers stay when Pando itself is upgraded.",
        check_client_connection: "Leave it out: a request whose client has gone is not given to a worker.",
        default_middleware: "Leave it out: Pando adds no middleware.",
        max_consecutive_spawn_errors: "Leave it out: a worker that cannot start is tried again, later each time.",
        rewindable_input: "Leave it out: the body can be rewound, except below stream_bodies paths.",
        setpgid: "Leave it out: all processes are in the monitor's group."
      }.transform_keys(&:name)
                 .merge(RENAMED.transform_values { |line| "Write #{line.join(" ")}." },
                        *SEVERAL.map { |replacement, names| names.to_h { |name| [name, replacement] } }).freeze

      OTHER_PLUGIN = "A plugin of Puma, which Pando does not run: what it does belongs in a hook, or in a service " \
                     "beside the workers (docs/services.md)."
      # Plugins of Puma that `pando init` leaves out.
      PLUGINS = {
        "tmp_restart" => "Pando watches tmp/restart.txt without being told.",
        "tailwindcss" => "A plugin of Puma: run bin/rails tailwindcss:watch beside the server, as bin/dev does.",
        "yabeda" => "A plugin of Puma: Pando has Prometheus metrics of its own (docs/metrics.md), and " \
                    "Pando::Exporters::Yabeda in a service passes them on to Yabeda (docs/services.md).",
        "yabeda_prometheus" => "A plugin of Puma: mount Yabeda::Prometheus::Exporter in config.ru, or start its " \
                               "server in a service (docs/services.md).",
        "sidekiq_embed" => "A plugin of Puma: node :sidekiq, require: \"./config/environment.rb\" (docs/swarm.md)."
      }.freeze

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

      # A variable, or what `pando init` writes for it.
      ENVIRONMENT_VARIABLE = /ENV(?:\[|\.fetch[( ])\s*["'](?:RAILS|RACK|APP)_ENV["']\]?|\benvironment\b/
      ONLY_ENVIRONMENT = /\A(?:#{ENVIRONMENT_VARIABLE}|["':]development\b["']?|\|\||\.to_s\b|[\s{}(),])*\z/
      private_constant :ENVIRONMENT_VARIABLE, :ONLY_ENVIRONMENT

      # @return [String, nil] what to do instead
      def self.flag(name, value)
        %w[-b --bind].include?(name) && value&.start_with?("ssl://") ? NO_TLS : FLAGS[name]
      end

      # @return [String, nil] what to do instead
      def self.hint(name) = SETTINGS[name]

      # @return [String] what to do instead
      def self.plugin(name) = name == "solid_queue" ? "Write #{SolidQueue::LINE}." : PLUGINS.fetch(name, OTHER_PLUGIN)

      # @param expression [String] the value of a line `environment`
      # @return [Boolean] whether Pando has that value without the line: the expression reads no other source than the
      #   variables that Pando reads, and has no other default than Pando
      def self.environment_followed?(expression)
        expression.match?(ENVIRONMENT_VARIABLE) && expression.match?(ONLY_ENVIRONMENT)
      end
    end
  end
end
