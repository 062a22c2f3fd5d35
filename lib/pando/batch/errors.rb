# frozen_string_literal: true

module Pando
  class Batch
    # Writes errors that no caller gets to stderr.
    module ErrorLog
      def self.write(what, error)
        warn "pando: #{what} #{error.full_message(highlight: false)}"
      rescue IOError, SystemCallError
        nil # stderr is closed
      end
    end

    # The batch accepts no new items: it is quiet or stopped.
    class Closed < Error
      def initialize(message = "the batch accepts no new items: it is quiet or stopped") = super
    end

    # There is no room, and the calling thread must not wait for it.
    class Full < Error
      def initialize(message = "the batch is full, and one of its own threads cannot wait for room") = super
      def passing? = true
    end

    # The thread that processed the item ended before the item did: by Thread#kill or Thread.exit.
    class ThreadKilled < Error
      def initialize(message = "the thread was killed while it processed the item") = super
    end

    # Checks the arguments of Batch and Consumer when they are made, so that the error does not come up later, in use.
    # Each method raises an ArgumentError.
    module Arguments
      class << self
        def count(name, value)
          check(name, value, "a whole number, at least one") { value.is_a?(Integer) && value.positive? }
        end

        def seconds(name, value)
          check(name, value, "a number of seconds") { value.is_a?(Numeric) && value.real? && !value.negative? }
        end

        def callable(name, value)
          check(name, value, "something to call") { value.respond_to?(:call) }
        end

        # The `key:` option.
        def key(value)
          check(:key, value, "a Symbol or something to call") { value.nil? || value.respond_to?(:to_proc) }
        end

        # The `retry_on:` option.
        def errors(values)
          values.each do |one|
            check(:retry_on, one, "classes of errors, or something to call") do
              one.is_a?(Module) || one.respond_to?(:call)
            end
          end
        end

        def items(value)
          check(:items, value, "an Array, or another Enumerable") { value.respond_to?(:map) }
        end

        private

        def check(name, value, wanted)
          raise ArgumentError, "#{name}: must be #{wanted}, but is #{value.inspect}" unless yield
        end
      end
    end
  end
end
