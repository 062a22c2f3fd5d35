# frozen_string_literal: true

require "support/peer"

module Bench
  module Servers
    # A server in C, with one thread per worker for the app and its own threads.
    class Iodine < Peer
      def label = "Iodine"

      def command
        [*executable("iodine"), "-b", "127.0.0.1", "-p", port.to_s, "-w", @workers.to_s, "-t", "1", @app]
      end
    end
  end
end
