# frozen_string_literal: true

require "pando/http/errors"
require "pando/http/handover"
require "pando/http/pace"
require "pando/http/queue_time"

module Pando
  module HTTP
    # The client of one request as a worker behind the reactor sees him: a place in
    # the worker's lane, with the interface of {Client}. The reactor holds the
    # connection; it takes what is put here and tells if nobody wants it any more.
    # Owned by a {Connection}, for one request.
    #
    # @api private
    class LaneClient
      include Handover

      # A file up to this size travels in frames, a larger one as a descriptor. Bytes.
      SMALL_FILE = 65_536

      # @return [Timeout, nil] stopped while the reactor is waited for
      attr_writer :timeout

      # @param link [LaneLink] whose lane has just taken the request
      # @param channel [Channel]
      # @param write_timeout [Float] seconds
      def initialize(link, channel, write_timeout)
        @link = link
        @lane = link.lane
        @channel = channel
        @write_timeout = write_timeout
        @persistent = @broken = @ended = @stuck = false
      end

      # @return [Integer] bytes of the response sent so far
      def sent = @lane.sent

      # @return [String, nil] the client's address; nil on a UNIX socket
      def remote = @lane.remote

      # @param env [Hash]
      # @param reader [QueuedReader] that has read the head
      def introduce(env, reader)
        env["pando.queue_time"] = QueueTime.of(env, @lane.queue_time)
        env["pando.retry"] = true if @lane.retry?
        @persistent = reader.parser.keep_alive? && !@lane.last?
      end

      # @return [Boolean] whether another request may follow on this connection
      def persistent?
        @persistent &&= !@channel.draining?
      end

      # The answer is the last one on this connection.
      def last!
        @persistent = false
      end

      # @return [Boolean] whether the lane could not be freed of this request: the
      #   reactor does not read it, and no other request can be answered on it
      def stuck?
        @stuck
      end

      # @return [Boolean] whether this request is answered, or its connection somebody else's
      def over? = @ended

      # @return [nil] a slow reader is the reactor's to wait for
      def slow_rate = nil

      # @return [Boolean] whether, as far as the reactor knows, somebody waits for the answer
      def connected? = !@ended && @lane.wanted?

      # @return [Boolean] whether the client sends no more
      def half_closed? = !connected? || @lane.half_closed?

      # Sends a whole interim response, which is no part of the answer.
      #
      # @param text [String] that fits into one frame
      # @raise [ClientGone]
      def inform(text)
        refuse_if_over
        persist { @lane.put_interim(text) }
      end

      # A whole answer in one step, if it is ordinary and there is room for it.
      #
      # @param line [String] the status line @param fields [Object] @param body [Array]
      # @param ending [String] of the head
      # @return [Boolean] false: nothing was done
      # @raise [ClientGone]
      def answer(line, fields, body, ending)
        refuse_if_over
        outcome = @lane.answer(line, fields, body, ending, @persistent)
        lose_client if outcome == false
        @ended = true if outcome
      end

      # @param parts [Array<String>]
      # @raise [ClientGone]
      def transmit(parts)
        total = Wire.bytes(parts)
        offset = 0
        offset += put(parts, offset, nil) while offset < total
      end

      # As {#transmit}, for the end of the response. The connection is the reactor's then.
      def transmit_last(parts)
        total = Wire.bytes(parts)
        offset = put(parts, 0, @persistent)
        offset += put(parts, offset, @persistent) while offset < total
        @ended = true
      end

      # Sends a file's first `size` bytes.
      #
      # @return [Integer] bytes sent; less than size if the file has shrunk
      # @raise [ClientGone]
      def transmit_file(file, size)
        return transmit_content(file, size) if size <= SMALL_FILE

        refuse_if_over
        @link.pass(file, pace)
        persist { @lane.put_file(size) }
        size
      end

      # The request's body, or all of it, where that is in a file.
      #
      # @return [File]
      # @raise [ClientGone]
      def receive_file
        persist { @lane.want_file }
        @link.fetch
      end

      # The connection is another's, and the reactor forgets it.
      #
      # @return [TCPSocket, UNIXSocket]
      # @raise [ClientGone]
      def take_over
        take_descriptor { |descriptor, received| Handover.socket(descriptor, received) }
      end

      # As {#take_over}. A timeout waits: between the steps the socket would be nobody's.
      #
      # @yieldparam descriptor [Integer] @yieldparam received [String] behind what was read of the request
      # @return [Object] what the block returns
      # @raise [ClientGone]
      def take_descriptor
        Thread.handle_interrupt(RequestTimeout => :never) do
          refuse_if_over
          persist { @lane.want_socket }
          descriptor, received = while_suspended { @link.fetch_socket(@write_timeout) }
          @ended = @handed_over = true
          yield descriptor, received
        end
      rescue ClientGone
        @broken = true
        raise
      end

      # The answer is whole, if there is one. What {Client} needs for it is the reactor's affair.
      def finish(_buffer, _linger)
        return if @ended
        return reset if @broken || sent.zero?

        transmit_last([])
      rescue ClientGone
        reset
      end

      # Lets the reactor tell the client that his answer is not whole.
      def reset
        return if @ended

        @ended = true
        let_go
      end

      # After {#take_descriptor}: the reactor keeps the connection until now, to answer in place of a worker that dies.
      def let_go
        pace = Pace.new(@write_timeout)
        @link.wait_for_room(pace) while @lane.abort.nil? # its place is reserved: no slow client makes us wait
      rescue ClientTooSlow
        @stuck = true
      end

      private

      def put(parts, offset, last)
        refuse_if_over
        count = persist { @lane.put(parts, offset, last) }
        @pace&.moved(count)
        count
      end

      # Until there is room.
      def persist
        while (outcome = yield).nil?
          while_suspended { wait_for_room }
        end
        outcome || lose_client
      rescue ClientGone
        @broken = true
        raise
      end

      # However long that takes, as long as the reactor is alive: it is the one that ends a client that is too slow.
      def wait_for_room
        @link.wait_for_room(pace)
      rescue ClientTooSlow
        before = @turns
        @turns = @channel.stats.fetch("turns")
        raise if @turns == before

        @pace = nil
      end

      def lose_client
        @broken = true
        raise ClientGone, "the client is gone"
      end

      # The reactor's time is not the application's.
      def while_suspended(&waiting)
        @timeout ? @timeout.suspend(&waiting) : waiting.call
      end

      # Made when it is needed: few requests wait.
      def pace
        @pace ||= Pace.new(@write_timeout).tap { |pace| pace.moved(sent) }
      end

      def transmit_content(file, size)
        content = size.zero? ? "" : file.pread(size, 0)
        transmit([content])
        content.bytesize
      rescue EOFError
        0
      end

      # What an application kept of an earlier request must not get into the next one's answer.
      def refuse_if_over
        raise ClientGone, "the response is over" if @ended
      end
    end
  end
end
