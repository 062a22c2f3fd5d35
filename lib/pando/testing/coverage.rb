# frozen_string_literal: true

module Pando
  module Testing
    # Coverage of all generations as one. Ruby sets the counters to zero in a forked child, so each generation adds
    # its own to those that its ancestors have counted, which it has in its memory. SimpleCov reports in the process
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
          @counted = ::Coverage.peek_result
          nil
        end

        # In the heir.
        # @return [nil]
        def take_over
          @owner = Process.pid
          ::SimpleCov.pid = Process.pid if defined?(::SimpleCov) && ::SimpleCov.respond_to?(:pid) && ::SimpleCov.pid
          nil
        end

        # A process that the app forks counts for itself.
        # @param result [Hash] of the process that asks
        # @return [Hash] with what its ancestors counted
        def add(result) = @counted && @owner == Process.pid ? merge(@counted, result) : result

        # @return [nil]
        def forget = @counted = nil

        private

        def merge(old, new)
          old.merge(new) { |key, before, now| key == :oneshot_lines ? before | now : sum(before, now) }
        end

        def sum(before, now)
          case before
          when Hash then merge(before, now)
          when Array then before.zip(now).map { |pair| pair.compact.sum if pair.any? }
          else before + now
          end
        end
      end
    end
  end
end
