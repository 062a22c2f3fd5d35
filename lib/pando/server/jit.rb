# frozen_string_literal: true

module Pando
  class Server
    # Ruby's just-in-time compiler as a server sees it. In molds and workers.
    #
    # @api private
    module Jit
      module_function

      # @return [Boolean]
      def enabled? = !!(defined?(RubyVM::YJIT) && RubyVM::YJIT.enabled?)

      # Costs three microseconds.
      # @return [Integer] bytes that it has compiled; 0: there is none, or it is off
      def code_bytes
        return 0 unless enabled?

        RubyVM::YJIT.runtime_stats.values_at(:inline_code_size, :outlined_code_size).sum(&:to_i)
      end
    end
  end
end
