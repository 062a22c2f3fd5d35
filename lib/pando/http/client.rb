# frozen_string_literal: true

require "pando/http/errors"
require "pando/http/handover"
require "pando/http/outflow"
require "pando/http/queue_time"
require "pando/native"

module Pando
  module HTTP
    # The other end of one connection in direct mode: its socket, with a bound on
    # every wait. Owned by a {Connection}; whatever goes wrong with the socket is
    # {ClientGone}. With a reactor {LaneClient} stands in its place.
    #
    # @api private
    class Client
      include Handover
      include Outflow

      # Seconds that unread input is drained before a connection is closed, and
      # seconds of silence that end it sooner.
      LINGER = 2.0
      SILENCE = 0.5
      # Bytes read or sent per call.
      PORTION = 65_536

      # @return [Integer] bytes of the response sent so far
      attr_reader :sent
      # @return [Integer, nil] bytes a second that it took once it was waited for, if that was too slow
      attr_reader :slow_rate
      # @return [String, nil] the address; nil on a UNIX socket. A proxy may know better.
      attr_accessor :remote
      # @return [Timeout, nil] stopped while this client is waited for
      attr_writer :timeout

      # @param descriptor [Integer] of a socket in non-blocking mode, which is now the client's
      # @param write_timeout [Float] seconds
      # @param remote [String, nil] the address of the peer
      # @param proxied [Boolean] whether a PROXY header comes first
      def initialize(descriptor, write_timeout, remote = nil, proxied = false) # rubocop:disable Style/OptionalBooleanParameter -- as Connection#close
        @fd = descriptor
        @write_timeout = write_timeout
        @remote = remote
        @proxied = proxied
        @sent = @taken = 0
        @ended = @silent = false
      end

      # Adds to the environment what only the kind of client knows.
      #
      # @param reader [RequestReader] that has read the head
      def introduce(env, reader)
        @reader = reader
        @silent = !reader.parser.keep_alive?
        waited = QueueTime.of(env, nil)
        env["pando.queue_time"] = waited if waited
      end

      # @return [Boolean] whether a PROXY header comes first
      def proxied? = @proxied

      # @return [Boolean] whether another request may follow on this connection
      def persistent? = false

      # The answer is the last one on this connection.
      def last! = nil

      # @return [Boolean] whether this connection is answered, or somebody else's
      def over? = @fd.nil?

      # @return [Boolean] whether, as far as the kernel knows, somebody waits for the answer
      def connected? = !@fd.nil? && !Wire.gone?(@fd)

      # @return [Boolean] whether the client sends no more
      def half_closed? = @fd.nil? || Wire.half_closed?(@fd)

      # Puts bytes behind the first `offset` ones of buffer.
      #
      # @return [Integer] how many; 0 if the client sends no more
      # @raise [ClientGone]
      def receive(buffer, offset, max, pace)
        until (count = Wire.receive(@fd, buffer, offset, max))
          while_suspended { pace.wait { |seconds| Wire.wait_readable(@fd, seconds) } }
        end
        pace.moved(count)
        @ended = count.zero?
        count
      rescue SystemCallError => e
        gone(e)
      end

      # A whole answer in one step, if it is ordinary. It travels with the connection's
      # end, for which it waits a little: {#finish} must come at once.
      #
      # @param line [String] the status line @param fields [Object] @param body [Array]
      # @param ending [String] of the head
      # @return [Boolean] false: nothing was done
      # @raise [ClientGone]
      def answer(line, fields, body, ending)
        refuse_if_over
        sent = Wire.answer(@fd, line, fields, body, ending)
        return false unless sent

        sent.is_a?(Integer) ? moved(sent) : send_rest(*sent)
        true
      rescue SystemCallError => e
        gone(e)
      end

      # Sends all parts.
      #
      # @param parts [Array<String>]
      # @raise [ClientGone]
      def transmit(parts)
        send_all(parts)
      end

      # Sends a whole interim response, which is no part of the answer.
      #
      # @param text [String]
      # @raise [ClientGone]
      def inform(text)
        send_all([text])
        @sent = @taken = 0 # last: who is interrupted before has begun an answer
      end

      # As {#transmit}, for the end of the response: {#finish} comes next.
      alias transmit_last transmit

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
      def finish(buffer, linger)
        return unless @fd

        drain(buffer) if !@ended && (linger || talks_on?(buffer))
      rescue SystemCallError
        nil # the client was faster
      ensure
        release { |descriptor| close(descriptor) }
      end

      # Closes so that the client notices that its answer is not whole.
      def reset
        release { |descriptor| abort(descriptor) }
      end

      # The connection is another's.
      #
      # @return [TCPSocket, UNIXSocket]
      def take_over
        release do |descriptor|
          @handed_over = true
          Handover.socket(descriptor, @reader.rest)
        end
      end

      private

      # @param done [Integer] bytes of them that were sent already
      def send_all(parts, done = 0)
        refuse_if_over
        total = Wire.bytes(parts)
        while done < total
          count = Wire.transmit(@fd, parts, done)
          count ? done += moved(count) : wait_writable
        end
      rescue SystemCallError => e
        gone(e)
      end

      def send_rest(done, text)
        moved(done)
        send_all([text], done)
      end

      # What an application kept of an earlier request must not get into another connection.
      def refuse_if_over
        raise ClientGone, "the response is over" unless @fd
      end

      def close(descriptor) = Wire.close(descriptor)
      def abort(descriptor) = Wire.reset(descriptor)

      # Once: the number may be another's afterwards.
      def release
        descriptor = @fd
        @fd = nil
        yield descriptor if descriptor
      end

      # The client's time is not the application's.
      def while_suspended(&waiting)
        @timeout ? @timeout.suspend(&waiting) : waiting.call
      end

      # Who has asked for the connection's end sends no more (RFC 9112 section 9.6).
      def talks_on?(buffer)
        !@silent && unread?(buffer)
      end

      def unread?(buffer)
        count = Wire.receive(@fd, buffer, 0, PORTION)
        !count.nil? && count.positive?
      end

      def drain(buffer)
        Wire.finish(@fd)
        limit = now + LINGER
        while (left = limit - now).positive?
          count = Wire.receive(@fd, buffer, 0, PORTION)
          return if count&.zero? || (count.nil? && !Wire.wait_readable(@fd, [left, SILENCE].min))
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
