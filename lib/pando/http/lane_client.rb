# frozen_string_literal: true

require "pando/http/client"
require "pando/http/pace"
require "pando/native"
require "pando/sys"

module Pando
  module HTTP
    # The client of one request behind the reactor: a place in the worker's lane. The reactor holds the connection; it
    # takes the answer from the lane, and tells if the client is gone. See {Client}.
    class LaneClient
      include Client

      # A file up to this size travels in frames, a larger one as a descriptor. Bytes.
      SMALL_FILE = 65_536

      attr_writer :timeout

      def initialize(link, channel, write_timeout)
        @link = link
        @lane = link.lane
        @channel = channel
        @write_timeout = write_timeout
        @persistent = @broken = @ended = @stuck = @cut = false
      end

      def sent = @lane.sent
      def remote = @lane.remote

      def introduce(env, reader)
        QueueTime.tell(env, @lane.queue_time, @lane.body_time)
        env["pando.retry"] = true if @lane.retry?
        @persistent = reader.parser.keep_alive? && !@lane.last?
      end

      def persistent?
        @persistent &&= !@channel.draining?
      end

      def last!
        @persistent = false
      end

      # @return [Boolean] whether the lane is unusable: the reactor does not read it, and no other request can be
      #   answered on it
      def stuck? = @stuck

      def over? = @ended

      # The worker leaves: for the application this client is gone.
      def cut
        @cut = true
        @lane.cut
      end

      def cut? = @cut

      # The reactor deals with slow clients.
      def slow_rate = nil

      # As far as the reactor knows.
      def connected? = !@ended && @lane.wanted?
      def half_closed? = !connected? || @lane.half_closed?

      # @param text [String] that fits into one frame
      def inform(text)
        refuse_if_over
        persist { @lane.put_interim(text) }
      end

      # @return [Boolean] false: nothing was done, because the answer is special or there is no room for it
      def answer(line, fields, body, ending)
        refuse_if_over
        outcome = @lane.answer(line, fields, body, ending, @persistent)
        lose_client if outcome == false
        @ended = true if outcome
      end

      def transmit(parts)
        return parts.each_slice(PARTS) { |some| transmit(some) } if parts.size > PARTS

        total = Wire.bytes(parts)
        offset = 0
        offset += put(parts, offset, nil) while offset < total
      end

      # Afterwards the connection is the reactor's.
      def transmit_last(parts)
        if parts.size > PARTS
          transmit(parts.first(parts.size - PARTS))
          parts = parts.last(PARTS)
        end
        total = Wire.bytes(parts)
        offset = put(parts, 0, @persistent)
        offset += put(parts, offset, @persistent) while offset < total
        @ended = true
      end

      def transmit_file(file, size)
        return transmit_content(file, size) if size <= SMALL_FILE

        refuse_if_over
        @link.pass(file, pace)
        persist { @lane.put_file(size) }
        size
      end

      # The request's body, or the whole request, if the reactor has put it into a file.
      def receive_file
        refuse_if_over
        persist { @lane.want_file }
        @link.fetch
      end

      # The reactor forgets the connection.
      def take_over
        take_descriptor { |descriptor, received| Client.socket(descriptor, received) }
      end

      # As {#take_over}. A timeout is postponed, because between the steps the socket has no owner.
      def take_descriptor
        Thread.handle_interrupt(RequestTimeout => :never) do
          refuse_if_over
          persist { @lane.want_socket }
          descriptor, received = while_suspended { @link.fetch_socket(@write_timeout) }
          @ended = @handed_over = true
          @lane.count_connection
          yield descriptor, received
        end
      rescue ClientGone
        @broken = true
        raise
      end

      # The arguments are for {SocketClient}: here the reactor drains the connection.
      def finish(_buffer, _linger)
        return if @ended
        return reset if @broken || sent.zero?

        transmit_last([])
      rescue ClientGone
        reset
      end

      def reset
        return if @ended

        @ended = true
        let_go
      end

      def disown
        @ended = true
      end

      # After {#take_descriptor}: the reactor keeps the connection until now, to answer in place of a worker that dies.
      #
      # @param status [Integer] of the answer that the worker sends itself; 0: none
      def let_go(status = 0)
        pace = Pace.new(@write_timeout)
        @link.wait_for_room(pace) while @lane.abort(status).nil? # its place is reserved: a slow client cannot block it
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

      # Repeats the block until there is room in the lane.
      def persist
        while (outcome = yield).nil?
          while_suspended { wait_for_room }
        end
        outcome || lose_client
      rescue ClientGone
        @broken = true
        raise
      end

      # Waits as long as the reactor is alive: it is the reactor that ends a client that is too slow.
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

      # Objects that an application kept of an earlier request must not write into the next one's answer.
      def refuse_if_over
        raise ClientGone, "the response is over" if @ended
        raise ClientGone, "the worker leaves, and no longer waits for its streams" if @cut
      end
    end

    # A worker's {Lane} with the two descriptors that belong to it: the eventfd by which the reactor wakes the worker,
    # and the socket on which files travel. Owned by {ReactorHandler}, one per worker; each {LaneClient} waits by it.
    class LaneLink
      # Seconds that the reactor may take to pass a file, and between two checks whether the request is still wanted.
      TIMEOUT = 10.0
      INTERVAL = 0.25
      # Bytes of a packet: a ticket, and what a client has sent ahead.
      PACKET = 16_384 + 64

      attr_reader :lane

      def initialize(lane, eventfd, socket)
        @lane = lane
        @eventfd = eventfd
        @socket = socket
      end

      # Waits until the reactor has read enough for a frame of any size to fit.
      def wait_for_room(pace)
        @lane.drain # it has counted earlier calls
        return unless @lane.starve

        pace.wait { |seconds| Wire.wait_readable(@eventfd.fileno, seconds) }
      ensure
        @lane.fed
      end

      # Puts a descriptor on the socket; its frame comes next.
      def pass(file, pace)
        Sys.send_record(@socket, @lane.ticket, [file])
      rescue Errno::EAGAIN, Errno::ENOBUFS
        pace.wait { |seconds| Wire.wait_writable(@socket.fileno, seconds) }
        retry
      rescue SystemCallError => e
        raise ClientGone, e.message
      end

      # The request's file, after the frame that asks for it.
      def fetch
        descriptor, = await(TIMEOUT)
        File.for_fd(descriptor, File::RDONLY | File::BINARY).tap(&:rewind)
      end

      # The client's socket, after the frame that asks for it. The client may have to take earlier answers first.
      #
      # @return [Array(Integer, String)] a descriptor, and what the client has sent behind its request
      def fetch_socket(timeout)
        await([timeout, TIMEOUT].max)
      end

      private

      def await(timeout)
        ticket = @lane.ticket
        limit = Sys.now + timeout
        loop do
          wanted = @lane.wanted? # checked first: the packet may come with the request's end
          found = receive(ticket)
          return found if found
          raise ClientGone, "the reactor does not pass what belongs to the request" if !wanted || Sys.now > limit

          Wire.wait_readable(@socket.fileno, INTERVAL)
        end
      end

      # @return [Array(Integer, String), nil] nil: nothing came yet
      def receive(ticket)
        while (record = next_record)
          bytes, _sender, descriptors = record
          lose(descriptors) unless bytes
          mine, *others = bytes.start_with?(ticket) ? descriptors : [nil, *descriptors]
          others.each { |other| Sys.close_fd(other) }
          return [mine, bytes.byteslice(ticket.bytesize..)] if mine
          raise ClientGone, "the client is gone" if bytes.start_with?(ticket)
        end
      end

      # The record was cut short and its descriptors are lost: waiting would be in vain.
      def lose(descriptors)
        descriptors.each { |descriptor| Sys.close_fd(descriptor) }
        raise ClientGone, "there is no free descriptor for what belongs to the request"
      end

      # @return [Array, false] false: there is none
      def next_record
        record = Sys.receive_record(@socket, PACKET)
        raise ClientGone, "the reactor is gone" if record.nil?

        record
      rescue SystemCallError => e
        raise ClientGone, e.message
      end
    end
  end
end
