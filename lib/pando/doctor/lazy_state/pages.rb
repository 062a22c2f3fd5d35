# frozen_string_literal: true

require "pando/sys"

module Pando
  module Doctor
    module LazyState
      # How much memory each request makes private, by what it is used for. For a forked child whose parent lives:
      # what it has not written is still the parent's too.
      #
      # @api private
      class Pages
        # What memory is used for.
        USES = %i[ruby_heap malloc compiled_code library_data stack].freeze
        REQUESTS = 10
        private_constant :REQUESTS

        # @return [Array<Hash{Symbol => Object}>] private bytes by use: after the fork, each request, and a full
        #   garbage collection, which writes to much of the heap that no request has touched
        # @raise [SystemCallError] where the kernel does not show them
        def observe
          taken = [["fork", Sys.private_memory, nil]]
          1.upto(REQUESTS) do |number|
            began = Sys.now
            yield number
            taken << [number, Sys.private_memory, ((Sys.now - began) * 1000).round(2)]
          end
          GC.start
          taken << ["full GC", Sys.private_memory, nil]
          taken.map { |row| table_row(*row) }
        end

        private

        def table_row(after, bytes, milliseconds)
          { after: after, total: bytes.sum, **USES.zip(bytes).to_h, milliseconds: milliseconds }.compact
        end
      end
    end
  end
end
