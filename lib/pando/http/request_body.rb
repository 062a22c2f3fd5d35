# frozen_string_literal: true

require "pando/http/errors"
require "stringio"
require "tmpdir"

module Pando
  module HTTP
    # The body of a request is a {Spool} in direct mode, a {ReceivedBody} behind the reactor, or a
    # {StreamedBody}. Their contract, for {RequestReader} and {Request}:
    #
    #   input   what becomes `rack.input`: a plain StringIO or File, which have all that applications ask of an input,
    #           or the streamed body itself
    #   size    bytes; nil: not known yet
    #   close   frees its memory or its file, when the request is over
    #
    # A body is owned by its request.

    # A body that the worker itself receives: in memory up to a limit, then in a file that has no name, so that no crash
    # leaves it behind.
    class Spool
      attr_reader :size

      # @param directory [String, nil] of the file; nil: TMPDIR, or /tmp
      def initialize(memory, expected = 0, directory = nil)
        @directory = directory
        @memory = memory
        @size = 0
        on_disk { @file = temporary_file } if expected > memory
        @string = String.new(capacity: [expected, memory].min, encoding: Encoding::BINARY) unless @file
      end

      def <<(data)
        @size += data.bytesize
        return (@string << data) && self if @string && @size <= @memory

        on_disk do
          move_to_file unless @file
          @file << data
        end
        self
      end

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

      # @raise [Refused] there is no temporary directory
      def directory
        @directory ||= Dir.tmpdir
      rescue ArgumentError => e
        raise Refused.new(503, "the body cannot be kept: #{e.message}")
      end

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

    # A body that the reactor has received, in memory or in a file without a name.
    class ReceivedBody
      attr_reader :input, :size

      def self.in_memory(string)
        new(StringIO.new(string).binmode, string.bytesize)
      end

      def initialize(input, size)
        @input = input
        @size = size
      end

      # Frees the file.
      def close
        @input.close if @input.is_a?(File)
      end
    end

    # `rack.input` of a request without a body. It has no state: one frozen object serves all requests.
    #
    # @api public
    class NoBody
      # @return [String, nil]
      def read(length = nil, buffer = nil)
        raise ArgumentError, "negative length #{length} given" if length&.negative?

        buffer&.clear
        length.nil? || length.zero? ? (buffer || +"") : nil
      end

      # @return [nil]
      def gets(*) = nil

      def getc = nil
      def getbyte = nil

      # @return [self, Enumerator]
      def each(*) = block_given? ? self : to_enum

      alias each_line each

      # @return [Integer]
      def rewind = 0

      def seek(*) = 0
      def pos = 0
      def size = 0
      def eof? = true
      def close = nil
      def closed? = false
      def binmode = self
      def external_encoding = Encoding::BINARY
      def sync = true

      alias tell pos
      alias length size

      # The only one.
      NONE = new.freeze
      private_class_method :new
    end
  end
end
