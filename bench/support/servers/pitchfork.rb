# frozen_string_literal: true

require "support/peer"

module Bench
  module Servers
    # Shopify's server, which also reforks. Here it does so on request.
    class Pitchfork < Peer
      def label = "Pitchfork"

      def command
        config = File.join(@folder, "pitchfork.rb")
        File.write(config, <<~RUBY)
          worker_processes #{@workers}
          listen "127.0.0.1:#{port}", tcp_nopush: false
        RUBY
        [*executable("pitchfork"), "-c", config, "-E", "production", @app]
      end

      def worker_title = /\(gen:(?<generation>\d+)\) worker\[\d+\] - (?!init|exiting)/
      def generation_title = /\(gen:(?<generation>\d+)\)/
    end
  end
end
