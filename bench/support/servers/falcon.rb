# frozen_string_literal: true

require "support/peer"

module Bench
  module Servers
    # One fiber per request, in as many processes as the others have.
    class Falcon < Peer
      def label = "Falcon"

      def command
        [*executable("falcon"), "serve", "--forked", "-n", @workers.to_s, "-b", "http://127.0.0.1:#{port}", "-c", @app]
      end
    end
  end
end
