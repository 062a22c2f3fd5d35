# frozen_string_literal: true

require "objspace"
require "pando/fork_safety/audit/live_thread"

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
        def of_thread(thread) = ForkSafety::Audit::LiveThread.site(thread) || of(thread)
      end
    end
  end
end
