# frozen_string_literal: true

module Pando
  class Hooks
    # One hook: the block's parameters, the process that runs it, and when.
    Known = Struct.new(:arguments, :process, :help)
    private_constant :Known

    # Every hook. docs/hooks.md shows this table; a test compares them.
    # @return [Hash{Symbol => Struct}]
    TABLE = {
      before_fork: Known.new(
        %i[server], "mold, or a worker to be promoted",
        "Before each fork: close or disconnect what a child must not share."
      ),
      after_mold_fork: Known.new(
        %i[server mold], "mold", "In a new mold, generation 0's too, before it forks its first worker."
      ),
      after_worker_fork: Known.new(
        %i[server worker], "worker", "In a new worker, before it reports ready: connect, start threads."
      ),
      after_worker_ready: Known.new(
        %i[server worker], "worker", "In a new worker, once it is set up: just before it reports ready and serves."
      ),
      self_check: Known.new(
        %i[server role], "mold, worker, service",
        "In a forked mold, worker or service, just before it reports ready: raise if it is not fit."
      ),
      after_worker_timeout: Known.new(
        %i[server worker error], "worker", "A request outlived its soft timeout and has been unwound."
      ),
      after_worker_hard_timeout: Known.new(
        %i[server worker], "monitor", "A request outlived its hard timeout and its worker is about to be killed."
      ),
      before_worker_exit: Known.new(
        %i[server worker], "worker", "In a worker that leaves, after its last request and its queued work."
      ),
      after_worker_exit: Known.new(
        %i[server worker ending], "monitor", "A worker process is gone, for whatever reason; `ending` says how."
      ),
      after_request_complete: Known.new(
        %i[server worker env], "worker", "After each request, when the client has its answer."
      ),
      after_monitor_ready: Known.new(
        %i[server], "monitor", "Once, when the server listens, before the application is loaded."
      )
    }.each_value(&:freeze).freeze
  end
end
