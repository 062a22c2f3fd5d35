# frozen_string_literal: true

require "tempfile"

module Pando
  module Testing
    # Stores the name of the running test so that it survives the process: in an unlinked file that all generations
    # have open. Reads and writes start at its beginning, regardless of the shared position.
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
