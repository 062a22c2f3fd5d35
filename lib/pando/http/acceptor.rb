# frozen_string_literal: true

require "pando/events"
require "pando/native"

module Pando
  module HTTP
    # Takes one connection from a listener that other workers share.
    #
    # @api private
    class Acceptor
      # accept(2): the connection died in the queue, or an error of the network
      # that is pending on the new socket; or (EINVAL) the server stops, and nobody is
      # let in any more. Nothing to do but go on.
      LOST = [Errno::ECONNABORTED, Errno::EINVAL, Errno::EPROTO, Errno::EINTR, Errno::EPERM, Errno::ENETDOWN, Errno::ENOPROTOOPT,
              Errno::EHOSTDOWN, Errno::ENONET, Errno::EHOSTUNREACH, Errno::EOPNOTSUPP, Errno::ENETUNREACH].freeze
      # No descriptor or no memory: the connection stays queued, so that without
      # a pause the worker would spin.
      SCARCE = [Errno::EMFILE, Errno::ENFILE, Errno::ENOBUFS, Errno::ENOMEM].freeze
      # Seconds.
      PAUSE = 0.1

      # @param listener [#fileno] non-blocking
      # @return [Array(Integer, String), nil] a descriptor and the client's address (none for
      #   a UNIX socket); nil if nobody waits, or another worker was faster
      def accept(listener)
        Wire.accept(listener.fileno)
      rescue *LOST
        nil
      rescue *SCARCE => e
        Events.emit("accept.failed", pid: Process.pid, reason: e.message)
        sleep PAUSE
        nil
      end
    end
  end
end
