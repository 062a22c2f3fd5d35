# frozen_string_literal: true

require "pando/fork_safety"
require "pando/http/errors"
require "socket"

module Pando
  module HTTP
    # The client of one request, as all that answers it sees it: {SocketClient} in direct mode, {LaneClient} behind the
    # reactor. This module is their contract. Each of them has
    #
    #   introduce(env, reader)    adds to the environment what only this kind of client knows
    #   remote, timeout=          the address (nil: a UNIX socket); the request's {Timeout}, stopped during waits
    #   persistent?, last!        whether another request may follow on this connection; the answer is the last one
    #   over?                     whether the answer is sent, or the connection is the application's
    #   connected?, half_closed?  whether the client waits for its answer; whether it sends no more
    #   inform(text)              sends a whole interim response
    #   answer(line, fields, body, ending)   sends a whole ordinary answer in one step: the status line, the fields, an
    #                             Array, and the head's ending; false: nothing was done
    #   transmit(parts), transmit_last(parts)   send parts of an answer, and its end
    #   transmit_file(file, size)   sends a file's first bytes; how many: less than size if the file has shrunk
    #   sent                      bytes of the answer that were sent
    #   slow_rate                 bytes a second that a client took that was too slow, else nil
    #   take_over                 the connection's socket, no longer the server's
    #   finish(buffer, linger)    ends a whole answer
    #   reset                     ends an answer that is not whole, so that the client notices
    #   disown                    in a child of this process: the response is over for it, but not for the parent
    #
    # All that sends or receives raises {ClientGone} if the client is gone or too slow. Owned by a {Connection}, for one
    # request.
    module Client
      # Strings of an Array that are given to the C code together. For each piece that it sends, that goes through them
      # from the first one, so with a long Array its time would grow with the square of their number.
      PARTS = 64

      # A connection's socket, as applications know sockets. It belongs to this process alone: a mold that is forked
      # while it is open closes its copy.
      #
      # @param received [String] bytes from the client that are to be read first; IO.select knows of them
      def self.socket(descriptor, received)
        kind = Sys.borrow(descriptor, Socket) { |any| any.local_address.ip? ? TCPSocket : UNIXSocket }
        socket = kind.for_fd(descriptor)
        socket.ungetbyte(received) unless received.empty?
        ForkSafety::Descriptors.keep_from_children(socket)
        socket
      end

      # Gives the whole connection to the application, instead of an answer.
      def hijack
        raise IOError, "the request is over: its connection cannot be hijacked any more" if over?
        raise IOError, "the response has begun: the connection cannot be hijacked any more" if sent.positive?

        take_over.tap { answering }
      end

      # For an answer that goes on when the application has returned.
      def detach = DetachedClient.new(take_over, @write_timeout)

      # Called before the application's answer begins.
      #
      # @raise [RequestTimeout] it comes too late
      def check_timeout = @timeout&.check

      # Called when the head of the application's answer was sent, or its connection was hijacked.
      def answering = @timeout&.answering

      # @return [Boolean] whether the application has the connection
      def handed_over? = @handed_over || false

      # @return [Boolean] whether the server ends the response, since its worker leaves
      def cut? = false

      # @return [Boolean] whether the server can still answer as it likes
      def unanswered? = !handed_over? && sent.zero?

      private

      # Waits for the client do not count for the application's timeout.
      def while_suspended(&waiting)
        @timeout ? @timeout.suspend(&waiting) : waiting.call
      end
    end

    # How long a request has waited for a worker: since the first proxy saw it, if X-Request-Start says so, else since
    # the reactor had all of it. In direct mode only the proxy knows.
    #
    # Proxies write that field in seconds, milliseconds or microseconds of Unix time, with or without "t=" before it;
    # the magnitude tells. Impossible values are ignored, because a client may send the field as well.
    module QueueTime
      FIELD = "HTTP_X_REQUEST_START"
      # As Puma names it: milliseconds, an Integer.
      BODY_WAIT = "puma.request_body_wait"
      # Seconds that a request waits at most.
      LONGEST = 3600.0

      class << self
        # Sets what says how long a request has waited: `pando.queue_time`, and what monitoring services and
        # autoscalers read. Those subtract the time of the body from the time since the stamp: so it may only be told
        # beside a stamp from before the body.
        def tell(env, waited, body)
          env["pando.queue_time"] = of(env, waited, body)
          return env[BODY_WAIT] = (body * 1000).round if body && env[FIELD]

          env[FIELD] ||= (Process.clock_gettime(Process::CLOCK_REALTIME,
                                                :float_millisecond) - (waited * 1000)).to_i.to_s
        end

        # A proxy may have stamped the request before its body came.
        def of(env, waited, body = nil)
          field = env[FIELD] or return waited

          stamped = since(field) or return waited
          body ? (stamped - body).clamp(0.0, nil) : stamped
        end

        private

        def since(field)
          digits = field[/\A(?:t=)?(\d{10,19}(?:\.\d{1,9})?)\z/, 1]
          return unless digits

          seconds = Process.clock_gettime(Process::CLOCK_REALTIME) - unix_time(digits.to_f)
          seconds.clamp(0.0, nil) if seconds.between?(-1.0, LONGEST) # clocks of two machines
        end

        def unix_time(number)
          return number if number < 1e11

          return number / 1e3 if number < 1e14

          number < 1e17 ? number / 1e6 : number / 1e9
        end
      end
    end
  end
end
