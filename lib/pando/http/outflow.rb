# frozen_string_literal: true

require "pando/http/pace"
require "pando/native"
require "pando/sys"
require "socket"

module Pando
  module HTTP
    # How fast a {Client} takes its answer, and the wait for it, in direct mode. Part
    # of the client, in a worker; the reactor's is ext/pando/http/reactor_reader.c.
    #
    # @api private
    module Outflow
      # Looks at what the client has taken, in one pause; the reactor's are as many.
      LOOKS = 4
      # tcp(7): bytes that the peer has not acknowledged.
      SIOCOUTQ = 0x5411

      private

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
        @first_wait ||= [now, @taken]
        while_suspended { pace.wait { |seconds| progress?(seconds) } }
      rescue ClientTooSlow
        since, before = @first_wait
        @slow_rate = ((@taken - before) / [now - since, 0.001].max).round
        raise
      end

      # A socket becomes writable when a third of its full buffer has drained: a slow client needs long for that.
      def progress?(seconds)
        before = @taken
        LOOKS.times.any? { Wire.wait_writable(@fd, seconds / LOOKS) || count_taken > before }
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
    end
  end
end
