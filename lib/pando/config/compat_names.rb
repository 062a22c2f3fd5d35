# frozen_string_literal: true

module Pando
  class Config
    # What to write instead of the settings and flags that users know from
    # Pitchfork, Unicorn and Puma. Only hints, for error messages.
    #
    # @api private
    module CompatNames
      NOT_NEEDED = "Leave it out: the mold always loads the application before workers are forked."
      SERVICE_MANAGER = "Leave it out: a service manager such as systemd does this."
      ONE_THREAD = "Leave it out: a worker serves one request at a time; raise workers instead."
      ON_THE_COMMAND_LINE = "Give -C DIR on the command line."
      AFTER_WORKER_FORK = "Write after_worker_fork { |server, worker| ... }."
      BEFORE_WORKER_EXIT = "Write before_worker_exit { |server, worker| ... }."
      AFTER_MONITOR_READY = "Write after_monitor_ready { |server| ... }."

      # @return [Hash{String => String}]
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
        threads: ONE_THREAD,
        preload_app!: NOT_NEEDED,
        fork_worker: "Write refork after: [N] or refork :auto.",
        nakayoshi_fork: NOT_NEEDED,
        daemonize: SERVICE_MANAGER,
        pidfile: SERVICE_MANAGER,
        stdout_redirect: SERVICE_MANAGER,
        on_worker_boot: AFTER_WORKER_FORK,
        before_worker_boot: AFTER_WORKER_FORK,
        on_worker_shutdown: BEFORE_WORKER_EXIT,
        before_worker_shutdown: BEFORE_WORKER_EXIT,
        on_worker_fork: "Write before_fork { |server| ... }.",
        on_refork: "Write before_fork { |server| ... } or after_mold_fork { |server, mold| ... }.",
        before_refork: "Write before_fork { |server| ... } or after_mold_fork { |server, mold| ... }.",
        on_booted: AFTER_MONITOR_READY,
        after_booted: AFTER_MONITOR_READY,
        worker_timeout: "Write timeout SECONDS.",
        worker_boot_timeout: "Write spawn_timeout SECONDS.",
        worker_shutdown_timeout: "Write stop_timeout SECONDS.",
        force_shutdown_after: "Write stop_timeout SECONDS.",
        first_data_timeout: "Write header_timeout SECONDS.",
        http_content_length_limit: "Write max_body_bytes BYTES."
      }.transform_keys(&:name).freeze

      # @return [Hash{String => String}]
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
        "--threads" => ONE_THREAD,
        "--preload" => NOT_NEEDED,
        "-D" => SERVICE_MANAGER,
        "-d" => SERVICE_MANAGER,
        "--daemonize" => SERVICE_MANAGER
      }.freeze
    end
  end
end
