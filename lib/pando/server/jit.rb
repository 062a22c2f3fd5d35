# frozen_string_literal: true

require "pando/events"
require "pando/yjit"

module Pando
  class Server
    # Ruby's just-in-time compiler, as the setting `jit` wants it. Payload enables it in a mold that boots from cold.
    # All processes that are forked from there inherit it.
    module Jit
      class << self
        # Where it cannot be enabled, an event says why.
        def enable
          return if YJIT.enabled?

          reason = obstacle
          reason ? Events.emit("jit.unavailable", reason: reason) : RubyVM::YJIT.enable
        end

        # Costs three microseconds.
        # @return [Integer] bytes of compiled code; 0: it is off, or this Ruby has none
        def code_bytes
          return 0 unless YJIT.enabled?

          RubyVM::YJIT.runtime_stats.to_h.values_at(:inline_code_size, :outlined_code_size).sum(&:to_i)
        end

        private

        def obstacle
          return "ZJIT is on (RUBYOPT, --zjit), and Ruby runs one JIT at a time" if YJIT.displaced?
          return if defined?(RubyVM::YJIT) && RubyVM::YJIT.respond_to?(:enable)

          "Ruby #{RUBY_VERSION} cannot enable YJIT: that takes 3.3 or newer with YJIT built in"
        end
      end
    end
  end
end
