# frozen_string_literal: true

require "io/wait"
require "pando/http/errors"
require "pando/http/pace"
require "socket"

module Pando
  module HTTP
    # The other end of one connection: its socket, with a bound on every wait.
    # Owned by a {Connection}; whatever goes wrong with the socket is {ClientGone}.
    #
    # @api private
    class Client
      # Seconds that unread input is drained before a connection is closed, and
      # seconds of silence that end it sooner.
      LINGER = 2.0
      SILENCE = 0.5
      # Bytes read or sent per call.
      PORTION = 65_536
      # SO_LINGER with zero seconds: close(2) sends a reset.
      RESET = [1, 0].pack("ii").freeze
      private_constant :RESET

      # @return [Integer] bytes sent so far
      attr_reader :sent
      # @return [Timeout, nil] stopped while this client is waited for
      attr_writer :timeout

      # @param socket [Socket] in non-blocking mode
      # @param write_timeout [Float] seconds
      def initialize(socket, write_timeout)
        @socket = socket
        @fd = socket.fileno
        @pace = Pace.new(write_timeout)
        @sent = 0
        @ended = false
      end

      # Puts bytes behind the first `offset` ones of buffer.
      #
      # @return [Integer] how many; 0 if the client sends no more
      # @raise [ClientGone]
      def receive(buffer, offset, max, pace)
        until (count = Wire.receive(@fd, buffer, offset, max))
          pace.wait { |seconds| @socket.wait_readable(seconds) }
        end
        pace.moved(count)
        @ended = count.zero?
        count
      rescue SystemCallError => e
        gone(e)
      end

      # Sends all parts.
      #
      # @param parts [Array<String>]
      # @raise [ClientGone]
      def transmit(parts)
        left = parts.sum(&:bytesize)
        total = left
        until left.zero?
          count = Wire.transmit(@fd, parts, total - left)
          count ? left -= moved(count) : wait_writable
        end
      rescue SystemCallError => e
        gone(e)
      end

      # Sends a file's first `size` bytes without reading them.
      #
      # @return [Integer] bytes sent; less than size if the file has shrunk
      # @raise [ClientGone]
      def transmit_file(file, size)
        done = 0
        while done < size
          count = Wire.sendfile(@fd, file.fileno, done, [size - done, 1 << 30].min)
          break if count&.zero?

          count ? done += moved(count) : wait_writable
        end
        done
      rescue SystemCallError => e
        gone(e)
      end

      # Closes so that the client can read all of the answer: close(2) with
      # unread input is a reset, which may overtake what was sent (RFC 9112 section 9.6).
      #
      # @param buffer [String] scratch space
      # @param linger [Boolean] more input is to be expected
      def finish(buffer, linger: false)
        return if @socket.closed?

        drain(buffer) if !@ended && (linger || unread?(buffer))
      rescue SystemCallError, IOError
        nil # the client was faster
      ensure
        @socket.close
      end

      # Closes so that the client notices that its answer is not whole.
      def reset
        @socket.setsockopt(:SOCKET, :LINGER, RESET)
      rescue SystemCallError, IOError
        nil # already broken
      ensure
        @socket.close
      end

      private

      def moved(count)
        @sent += count
        @pace.moved(count)
        count
      end

      def wait_writable
        return @pace.wait { |seconds| @socket.wait_writable(seconds) } unless @timeout

        @timeout.suspend { @pace.wait { |seconds| @socket.wait_writable(seconds) } }
      end

      def unread?(buffer)
        count = Wire.receive(@fd, buffer, 0, PORTION)
        !count.nil? && count.positive?
      end

      def drain(buffer)
        @socket.shutdown(Socket::SHUT_WR)
        limit = now + LINGER
        while (left = limit - now).positive?
          count = Wire.receive(@fd, buffer, 0, PORTION)
          return if count&.zero? || (count.nil? && !@socket.wait_readable([left, SILENCE].min))
        end
      end

      def gone(error)
        @ended = true
        raise ClientGone, error.message
      end

      def now
        Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
