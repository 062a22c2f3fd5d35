# frozen_string_literal: true

module Pando
  module Telemetry
    # Puts whole lines onto a descriptor that other processes write to as well,
    # and never lets its reader hold the server up. Owned by the Log.
    #
    # A line is one write(2): on a pipe the kernel keeps up to PIPE_BUF bytes
    # together (pipe(7)), in a file opened for appending any number. A reader that
    # stalls is waited for a moment, once; until it moves again lines are dropped
    # and counted. A reader that is gone is no reason to die.
    #
    # @api private
    class LineWriter
      # Seconds that a stalled reader may cost, once.
      PATIENCE = 0.25

      # @return [Integer] lines dropped since the last one that was written
      attr_reader :lost

      # @param io [IO, #syswrite]
      # @param patience [Numeric] seconds
      def initialize(io, patience: PATIENCE)
        @io = io
        @patience = patience
        @lost = 0
        @torn = false
      end

      # @param line [String] ends with a newline; may hold several lines
      # @return [nil]
      def write(line)
        put(complete(line)) ? @lost = 0 : @lost += 1
        nil
      end

      private

      # What the lines before it left undone comes first.
      def complete(line)
        line = "pando: #{@lost} log lines lost\n#{line}" if @lost.positive?
        @torn ? "\n#{line}" : line
      end

      def put(line)
        return false unless writable?(@lost.positive? ? 0 : @patience)

        # A short write (a full pipe in non-blocking mode, a full disk) is not
        # continued: somebody else's line may be behind it by then.
        @torn = @io.syswrite(line) < line.bytesize
        true
      rescue Errno::EINTR
        retry
      rescue SystemCallError, IOError
        false
      end

      # A pipe that polls as writable takes PIPE_BUF bytes without blocking.
      def writable?(seconds)
        !@io.is_a?(IO) || !IO.select(nil, [@io], nil, seconds).nil?
      end
    end
  end
end
