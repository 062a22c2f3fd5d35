# frozen_string_literal: true

require "support/peer"

module Bench
  module Servers
    # A server in Rust, with one thread per worker for the app and its own threads.
    class Itsi < Peer
      def label = "Itsi"

      def command
        [*executable("itsi", gem: "itsi-server"), "start", "-w", @workers.to_s, "-t", "1",
         "-b", "http://127.0.0.1:#{port}", "-r", @app]
      end
    end
  end
end
