# frozen_string_literal: true

require "pando/compat/names"
require "pando/compat/settings"

module Pando
  module Compat
    # Translates each hook of Puma, Unicorn and Pitchfork to config/pando.rb. The block keeps its text.
    #
    # `pando init` uses it, by way of Translator.
    #
    # @api private
    class Blocks
      Result = Settings::Result

      # Pando's name for the hook, what its block receives (:index as in Puma, :pair for a server and a worker, :none),
      # and a remark.
      Hook = Struct.new(:name, :gives, :remark)

      EACH_FORK = "This runs before each fork, in the process that is forked, and not once at the start."
      MONITOR = "This runs in the monitor, which never loads the application."
      WORKER = Hook.new("after_worker_fork", :index)
      EXIT = Hook.new("before_worker_exit", :index)
      FORK = Hook.new("before_fork", :none, EACH_FORK)
      READY = Hook.new("after_monitor_ready", :none, MONITOR)

      PUMA = {
        "on_worker_boot" => WORKER, "before_worker_boot" => WORKER, "on_thread_start" => WORKER,
        "before_thread_start" => WORKER, "on_worker_shutdown" => EXIT, "before_worker_shutdown" => EXIT,
        "on_thread_exit" => EXIT, "before_thread_exit" => EXIT, "before_fork" => FORK, "on_worker_fork" => FORK,
        "before_worker_fork" => FORK, "on_refork" => FORK, "before_refork" => FORK, "on_booted" => READY,
        "after_booted" => READY
      }.freeze

      UNICORN = {
        "before_fork" => Hook.new("before_fork", :pair, EACH_FORK),
        "after_fork" => Hook.new("after_worker_fork", :pair),
        "before_worker_fork" => Hook.new("before_fork", :pair, EACH_FORK), "after_monitor_ready" => READY,
        **%w[after_mold_fork after_worker_fork after_worker_ready before_worker_exit after_worker_exit
             after_worker_timeout after_worker_hard_timeout after_request_complete]
                .to_h { |name| [name, Hook.new(name, :pair)] }
      }.freeze

      KILLER = /PumaWorkerKiller|puma_worker_killer/
      UNICORN_SERVER = /\bserver\.\w/
      private_constant :KILLER, :UNICORN_SERVER

      # @param dialect [Symbol] :puma or :unicorn
      # @param scope [Scope]
      def initialize(dialect, scope)
        @dialect = dialect
        @hooks = dialect == :puma ? PUMA : UNICORN
        @scope = scope
      end

      # @param statement [Statement]
      # @return [Result, nil] nil: it is not a hook
      def translate(statement)
        return puma_after_worker_fork if @dialect == :puma && statement.name == "after_worker_fork"

        hook = @hooks[statement.name] or return
        reason = obstacle(statement, hook)
        reason ? Result.new(nil, reason) : Result.new(write(statement, hook), hook.remark)
      end

      private

      def puma_after_worker_fork = Result.new(nil, Names::NO_MASTER)

      def obstacle(statement, hook)
        block = statement.block
        return "Its block is made elsewhere: write it here." unless block
        return "It needs Puma: memory worker: 512.mb replaces a worker that has grown." if block.match?(KILLER)
        return "Puma's data for this block has no equal." if hook.gives == :index && statement.parameters.size > 1
        return "The block's values have no equal: it is called once for each fork." if foreign_values?(statement, hook)
        return "Pando's server has other methods." if @dialect == :unicorn && block.match?(UNICORN_SERVER)

        @scope.trouble(inside(block)) if hook == READY
      end

      # Pando does not know a worker before it is forked, so the block gets none.
      def foreign_values?(statement, hook)
        return statement.parameters.any? if hook.gives == :none
        return false unless hook.name == "before_fork"

        worker = statement.parameters[1]
        !worker.nil? && statement.block.scan(/\b#{Regexp.escape(worker)}\b/).size > 1
      end

      # The statements of a block.
      def inside(block)
        block[/\A(?:do|\{)\s*(?:\|[^|]*\|)?(.*)(?:end|\})[^}]*\z/m, 1]
      end

      def write(statement, hook)
        index = statement.parameters.first if hook.gives == :index
        text = statement.rewrite(hook.name, parameters: index && ["_server", "worker", "#{index} = worker.slot"])
        hook.gives == :pair ? text.gsub(/\bworker\.nr\b/, "worker.slot") : text
      end
    end
  end
end
