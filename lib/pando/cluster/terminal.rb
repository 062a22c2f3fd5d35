# frozen_string_literal: true

module Pando
  module Cluster
    # The terminal that the server was started from, if any. When it is closed the kernel sends the SIGHUP
    # that an operator means as an order to reload (credentials(7)).
    #
    # Owned by the monitor.
    #
    # @api private
    class Terminal
      # @return [Boolean]
      def self.there?
        File.open("/dev/tty", File::RDONLY | File::NOCTTY, &:tty?)
      rescue SystemCallError
        false
      end

      def initialize
        @had = Terminal.there?
      end

      # @return [Boolean] once: whether it has gone since it was asked last
      def lost?
        lost = @had && !Terminal.there?
        @had &&= !lost
        lost
      end
    end
  end
end
