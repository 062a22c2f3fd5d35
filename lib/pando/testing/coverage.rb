# frozen_string_literal: true

module Pando
  module Testing
    # Coverage of all generations as one. Ruby sets the counters of lines and branches to zero in a forked child, and
    # leaves those of methods. So each generation adds its own to what its ancestors have counted and it does not have,
    # which is in its memory. SimpleCov reports in the process
    # that started it only; the newest generation is made to be that.
    #
    # @api private
    module Coverage
      # On Ruby's module.
      module Added
        def peek_result = Coverage.add(super)

        def result(stop: true, clear: true)
          Coverage.add(super).tap { Coverage.forget if clear || stop }
        end
      end

      class << self
        # In the forker.
        # @return [nil]
        def before_fork
          return unless defined?(::Coverage) && ::Coverage.running?

          ::Coverage.singleton_class.prepend(Added) unless @installed
          @installed = true
          @handed_down = ::Coverage.peek_result
          nil
        end

        # In the heir.
        # @return [nil]
        def take_over
          @counted = nil # so that the next line sees what this process has by itself
          @counted = combine(@handed_down, ::Coverage.peek_result) { |all, own| all - own } if @handed_down
          @owner = Process.pid
          ::SimpleCov.pid = Process.pid if defined?(::SimpleCov) && ::SimpleCov.respond_to?(:pid) && ::SimpleCov.pid
          nil
        end

        # A process that the app forks counts for itself.
        # @param result [Hash] of the process that asks
        # @return [Hash] with what its ancestors counted
        def add(result)
          return result unless @counted && @owner == Process.pid

          combine(@counted, result) { |before, now| before + now }
        end

        # @return [nil]
        def forget = @counted = @handed_down = nil

        private

        def combine(old, new, &count)
          old.merge(new) do |key, one, other|
            key == :oneshot_lines ? one | other : join(one, other, &count)
          end
        end

        # Lines that are no code are nil, in both.
        def join(one, other, &count)
          case one
          when Hash then combine(one, other, &count)
          when Array then one.zip(other).map { |pair| count.call(*pair) if pair.all? }
          else yield one, other
          end
        end
      end
    end
  end
end
