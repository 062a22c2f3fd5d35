# frozen_string_literal: true

require "pando/events"
require "pando/yjit"

module Pando
  class Server
    # Ruby's just-in-time compiler, as the setting `jit` wants it: on in all workers, or only in the trainee until the
    # first refork, after which the other workers come from it. Made by Payload in a mold that boots from cold, and
    # inherited by all that is forked from it.
    class Jit
      # @return [Boolean] whether it can be enabled in a running Ruby
      def self.possible? = defined?(RubyVM::YJIT) && RubyVM::YJIT.respond_to?(:enable)

      # Costs three microseconds.
      # @return [Integer] bytes of compiled code; 0: it is off, or this Ruby has none
      def self.code_bytes
        return 0 unless YJIT.enabled?

        RubyVM::YJIT.runtime_stats.to_h.values_at(:inline_code_size, :outlined_code_size).sum(&:to_i)
      end

      # @param setting [:all, :trainee, nil] nil: do nothing
      def initialize(setting)
        @setting = setting
        @home = Process.pid
        @from_the_start = YJIT.enabled?
      end

      # After the application was loaded, because the code of its boot does not run again.
      def loaded
        return if @setting.nil?
        return complain if @setting == :trainee && YJIT.enabled?
        return unavailable("ZJIT is on (RUBYOPT, --zjit), and Ruby runs one JIT at a time") if YJIT.displaced?
        return unavailable("Ruby #{RUBY_VERSION} cannot enable YJIT: that takes 3.3 or newer with YJIT built in") unless
          Jit.possible?

        enable if @setting == :all
      end

      def train(worker)
        return unless @setting == :trainee && enable

        Events.emit("jit.enabled", slot: worker.slot, generation: worker.generation, pid: Process.pid)
      end

      # In a new mold, whichever worker it was forked from: its workers use the JIT.
      def promoted
        enable if @setting == :trainee && Process.pid != @home
      end

      private

      # @return [Boolean] whether this call has enabled it
      def enable
        return false if YJIT.enabled? || YJIT.displaced? || !Jit.possible?

        RubyVM::YJIT.enable
        true
      end

      def complain
        cause = "YJIT is on from the start (RUBYOPT, RUBY_YJIT_ENABLE or --yjit)"
        cause = "the application has enabled YJIT (Rails does, unless config.yjit is false)" unless @from_the_start
        unavailable("#{cause}: all workers compile")
      end

      def unavailable(reason)
        Events.emit("jit.unavailable", setting: @setting, reason: reason)
      end
    end
  end
end
