# frozen_string_literal: true

require "tempfile"

module Pando
  module Testing
    # The name of the running test, where it outlives the process that runs it: in a nameless file that all
    # generations have open. Read and written at its beginning, whatever the shared position says.
    #
    # @api private
    class Progress
      SIZE = 512
      private_constant :SIZE

      def initialize
        @io = Tempfile.create("pando-testing")
        File.unlink(@io.path)
        Pando.keep_io(@io)
      end

      # @param test [String]
      def note(test)
        @io.pwrite(test.b[0, SIZE].ljust(SIZE, "\0"), 0)
      end

      # @return [String]
      def running
        @io.pread(SIZE, 0).delete("\0").force_encoding(Encoding::UTF_8).scrub
      rescue EOFError
        ""
      end
    end
  end
end
