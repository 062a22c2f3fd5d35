# frozen_string_literal: true

require "pando/http/errors"
require "stringio"
require "tmpdir"

module Pando
  module HTTP
    # A request body while it arrives: in memory up to a limit, then in a file
    # that has no name, so that no crash leaves it behind. Owned by the request
    # whose `rack.input` it becomes; a plain StringIO or File, for those do
    # everything that applications ask of an input.
    #
    # @api private
    class Spool
      # @return [Integer] bytes
      attr_reader :size

      # @param memory [Integer] bytes to keep in memory at most
      # @param expected [Integer] bytes that are announced, if any
      # @param directory [String, nil] of the file; nil: TMPDIR, or /tmp
      # @raise [Refused] there is no room for it
      def initialize(memory, expected = 0, directory = nil)
        @directory = directory
        @memory = memory
        @size = 0
        on_disk { @file = temporary_file } if expected > memory
        @string = String.new(capacity: [expected, memory].min, encoding: Encoding::BINARY) unless @file
      end

      # @param data [String]
      # @return [self]
      # @raise [Refused] there is no room for it
      def <<(data)
        @size += data.bytesize
        return (@string << data) && self if @string && @size <= @memory

        on_disk do
          move_to_file unless @file
          @file << data
        end
        self
      end

      # @return [StringIO, File] at its beginning
      # @raise [Refused] there is no room for it
      def input
        return StringIO.new(@string).binmode unless @file

        on_disk { @file.rewind } # with what is not written yet
        @file
      end

      # Frees the disk space.
      def close
        @file&.close
      rescue SystemCallError
        nil # there was no room for the rest
      end

      private

      def on_disk
        yield
      rescue SystemCallError => e
        hint = " (RLIMIT_FSIZE, `ulimit -f`, is #{Process.getrlimit(:FSIZE).first} bytes)" if e.is_a?(Errno::EFBIG)
        raise Refused.new(503, "the body cannot be kept in #{directory}: #{e.message}#{hint}")
      end

      def move_to_file
        @file = temporary_file
        @file << @string
        @string = nil
      end

      def directory = @directory || Dir.tmpdir

      def temporary_file
        File.new(directory, File::RDWR | File::TMPFILE | File::BINARY, 0o600).binmode
      rescue Errno::EOPNOTSUPP, Errno::EISDIR, Errno::EINVAL, Errno::ENOENT
        named_and_unlinked_file # not every file system knows O_TMPFILE (open(2))
      end

      def named_and_unlinked_file
        path = File.join(directory, "pando-body-#{Process.pid}-#{Random.urandom(8).unpack1("H*")}")
        file = File.new(path, File::RDWR | File::CREAT | File::EXCL | File::BINARY, 0o600).binmode
        File.unlink(path)
        file
      end
    end
  end
end
