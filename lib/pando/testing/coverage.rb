# frozen_string_literal: true

module Pando
  module Testing
    # Adds up the coverage of all generations. In a forked child, Ruby sets the counters of lines and branches to zero,
    # and leaves those of methods. So each generation keeps in memory what only its ancestors have counted, and adds its
    # own counts. SimpleCov reports only in the process that started it, so each new generation takes that place.
    module Coverage
      # Prepended to Ruby's Coverage module.
      module Added
        def peek_result = Coverage.add(super)

        def result(stop: true, clear: true)
          Coverage.add(super).tap { Coverage.forget if clear || stop }
        end
      end

      class << self
        # Called in the forking process.
        def before_fork
          return unless defined?(::Coverage) && ::Coverage.running?

          ::Coverage.singleton_class.prepend(Added)
          @handed_down = ::Coverage.peek_result
          nil
        end

        # Called in the heir, the child that runs the next tests.
        def take_over
          @counted = nil # so that the next line sees only this process's own counts
          @counted = combine(@handed_down, ::Coverage.peek_result) { |all, own| all - own } if @handed_down
          @owner = Process.pid
          ::SimpleCov.pid = Process.pid if defined?(::SimpleCov) && ::SimpleCov.respond_to?(:pid) && ::SimpleCov.pid
          nil
        end

        # A process that the app forks counts only for itself.
        # @param result [Hash] the counts of the calling process
        # @return [Hash] the counts with those of its ancestors
        def add(result)
          return result unless @counted && @owner == Process.pid

          combine(@counted, result) { |before, now| before + now }
        end

        def forget = @counted = @handed_down = nil

        private

        def combine(old, new, &count)
          old.merge(new) do |key, one, other|
            key == :oneshot_lines ? one | other : join(one, other, &count)
          end
        end

        # Lines without code are nil in both.
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
