# frozen_string_literal: true

require "pando/http/client"
require "pando/http/pace"
require "pando/native"
require "pando/sys"

module Pando
  module HTTP
    # The client of one connection in direct mode: its socket, with a limit on every wait. See {Client}.
    class SocketClient
      include Client

      # Seconds that unread input is drained before a connection is closed, and seconds of silence that end it sooner.
      LINGER = 2.0
      SILENCE = 0.5
      # Bytes read or sent per call.
      PORTION = 65_536
      # Checks during one pause of how much the client has taken; the reactor makes as many.
      CHECKS = 4
      # tcp(7): bytes that the peer has not acknowledged.
      SIOCOUTQ = 0x5411

      attr_reader :sent, :slow_rate
      # A PROXY header replaces it.
      attr_accessor :remote
      attr_writer :timeout

      # @param descriptor [Integer] of a socket in non-blocking mode, which is now the client's
      def initialize(descriptor, write_timeout, remote = nil, proxied = false) # rubocop:disable Style/OptionalBooleanParameter -- as Connection#close
        @fd = descriptor
        @write_timeout = write_timeout
        @remote = remote
        @proxied = proxied
        @sent = @taken = 0
        @ended = @silent = false
      end

      def introduce(env, reader)
        @reader = reader
        @silent = !reader.parser.keep_alive? && !reader.parser.body?
        waited = QueueTime.of(env, nil)
        env["pando.queue_time"] = waited if waited
      end

      def proxied? = @proxied
      def persistent? = false
      def last! = nil
      def over? = @fd.nil?

      # As far as the kernel knows.
      def connected? = !@fd.nil? && !Wire.gone?(@fd)
      def half_closed? = @fd.nil? || Wire.half_closed?(@fd)

      # Receives bytes behind the first `offset` ones of buffer.
      #
      # @return [Integer] how many; 0 if the client sends no more
      def receive(buffer, offset, max, pace)
        refuse_if_over
        until (count = Wire.receive(@fd, buffer, offset, max))
          while_suspended { pace.wait { |seconds| Wire.wait_readable(@fd, seconds) } }
        end
        pace.moved(count)
        @ended = count.zero?
        count
      rescue SystemCallError => e
        gone(e)
      end

      # The answer travels with the connection's end, for which it waits a little: {#finish} must come at once.
      def answer(line, fields, body, ending)
        refuse_if_over
        sent = Wire.answer(@fd, line, fields, body, ending)
        return false unless sent

        sent.is_a?(Integer) ? moved(sent) : send_rest(*sent)
        true
      rescue SystemCallError => e
        gone(e)
      end

      def transmit(parts)
        send_all(parts)
      end

      # {#finish} comes next.
      alias transmit_last transmit

      def inform(text)
        send_all([text])
        @sent = @taken = 0 # last: an interruption before this line counts as a begun answer
      end

      # Sends the bytes without reading them.
      def transmit_file(file, size)
        refuse_if_over
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

      # Closes so that the client can read all of the answer: close(2) with unread input is a reset, which may overtake
      # what was sent (RFC 9112 section 9.6).
      #
      # @param buffer [String] scratch space
      # @param linger [Boolean] more input is to be expected
      def finish(buffer, linger)
        return unless @fd

        drain(buffer) if !@ended && (linger || more_input?(buffer))
      rescue SystemCallError
        nil # the client was faster
      ensure
        release { |descriptor| close(descriptor) }
      end

      def reset
        release { |descriptor| abort(descriptor) }
      end

      # The child keeps its copy of the descriptor until it ends.
      def disown
        @fd = nil
      end

      def take_over
        release do |descriptor|
          @handed_over = true
          Client.socket(descriptor, @reader.rest)
        end
      end

      private

      def send_all(parts, done = 0)
        return parts.each_slice(PARTS) { |some| send_all(some) } if parts.size > PARTS

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

      # Objects that an application kept of an earlier request must not write into another connection.
      def refuse_if_over
        raise ClientGone, "the response is over" unless @fd
      end

      def moved(count)
        @sent += count
        count
      end

      # Made when it is needed: few answers wait.
      def pace
        @pace ||= Pace.new(@write_timeout)
      end

      def wait_writable
        count_taken
        @first_wait ||= [Sys.now, @taken]
        while_suspended { pace.wait { |seconds| progress?(seconds) } }
      rescue ClientTooSlow
        since, before = @first_wait
        @slow_rate = ((@taken - before) / [Sys.now - since, 0.001].max).round
        raise
      end

      # A socket becomes writable when a third of its full buffer has drained, which takes a slow client long.
      def progress?(seconds)
        before = @taken
        CHECKS.times.any? { Wire.wait_writable(@fd, seconds / CHECKS) || count_taken > before }
      end

      # @return [Integer] bytes of the response that the client has taken
      def count_taken
        taken = [@sent - unacknowledged, @taken].max
        pace.moved(taken - @taken)
        @taken = taken
      end

      # On a UNIX socket all that was sent counts as taken.
      def unacknowledged
        Sys.borrow(@fd, Socket) do |socket|
          next 0 unless socket.local_address.ip?

          count = [0].pack("i")
          socket.ioctl(SIOCOUTQ, count)
          count.unpack1("i")
        end
      rescue SystemCallError
        0 # this kernel does not tell
      end

      # Once only: the number may be another descriptor's afterwards.
      def release
        descriptor = @fd
        @fd = nil
        yield descriptor if descriptor
      end

      def close(descriptor) = Wire.close(descriptor)
      def abort(descriptor) = Wire.reset(descriptor)

      # A client that has asked for the connection's end sends no more (RFC 9112 section 9.6), except for the line end
      # that old clients put behind a body (section 2.2).
      def more_input?(buffer)
        return false if @silent

        count = Wire.receive(@fd, buffer, 0, PORTION)
        !count.nil? && count.positive?
      end

      def drain(buffer)
        Wire.finish(@fd)
        limit = Sys.now + LINGER
        while (left = limit - Sys.now).positive?
          count = Wire.receive(@fd, buffer, 0, PORTION)
          return if count&.zero? || (count.nil? && !Wire.wait_readable(@fd, [left, SILENCE].min))
        end
      end

      def gone(error)
        @ended = true
        raise ClientGone, error.message
      end
    end

    # The client of an answer that has outlived its request: a partial hijack whose callback has returned. Owned by the
    # {Stream} that the application holds, and used in the application's threads while the worker serves others.
    class DetachedClient < SocketClient
      # @param socket [BasicSocket] closed with this client, or by the garbage collector
      def initialize(socket, write_timeout)
        super(socket.fileno, write_timeout)
        @socket = socket
      end

      private

      def close(_descriptor)
        @socket.close
      end

      def abort(_descriptor)
        @socket.setsockopt(Socket::Option.linger(true, 0))
      ensure
        @socket.close
      end
    end

    # A client that the reactor has handed over when it had the head of the request, because the body is to be streamed:
    # from there on as in direct mode. Owned by a {Connection}.
    class ForwardedClient < SocketClient
      # @param received [String] all that was received, the head first
      def initialize(descriptor, write_timeout, received, lane, origin)
        super(descriptor, write_timeout, lane.remote)
        @received = received
        @queue_time = lane.queue_time
        @retry = lane.retry?
        @origin = origin
      end

      def introduce(env, reader)
        super
        QueueTime.tell(env, @queue_time, nil)
        env["pando.retry"] = true if @retry
      end

      # @return [Integer] as {SocketClient#receive}, of what the reactor had received first
      def receive(buffer, offset, max, pace)
        return super if @received.empty?

        taken = @received.slice!(0, max)
        buffer.replace(buffer.byteslice(0, offset) << taken)
        taken.bytesize
      end

      # @return [false] the reactor may have the socket too, so that no end would follow at once
      def answer(*) = false

      def transmit(parts)
        part_from_reactor(parts.first.byteslice(9, 3).to_i) if @origin # "HTTP/1.1 200"
        super
      end

      alias transmit_last transmit

      def transmit_file(file, size)
        part_from_reactor
        super
      end

      def disown
        super
        @origin = nil
      end

      private

      # Once, before the first byte of the answer: until then the reactor would answer if this worker died.
      def part_from_reactor(status = 0)
        @origin&.let_go(status)
        @origin = nil
      end

      def release
        part_from_reactor
        super
      end
    end
  end
end
