# frozen_string_literal: true

require "objspace"

module Pando
  module Doctor
    module Subject
      # Where objects were made, as far as Ruby was told to remember.
      #
      # @api private
      module Origins
        module_function

        def trace = ObjectSpace.trace_object_allocations_start

        # @return [String, nil] "file:line"
        def of(object)
          file = ObjectSpace.allocation_sourcefile(object)
          file && "#{file}:#{ObjectSpace.allocation_sourceline(object)}"
        end

        # Ruby shows the line of a thread's block with it.
        # @return [String, nil]
        def of_thread(thread)
          Thread.instance_method(:inspect).bind_call(thread)[/ (\S+:\d+) [a-z_ ]+>\z/, 1] || of(thread)
        end
      end
    end
  end
end
