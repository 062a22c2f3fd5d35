# frozen_string_literal: true

require "support/packages"
require "support/server"

module Bench
  module Servers
    # The cost of a server in C without any application: it sends the same bytes with `return 200`.
    class Nginx < Server
      def label = "nginx return 200"

      def command
        config = File.join(@folder, "nginx.conf")
        File.write(config, settings)
        [Packages.executable("nginx", "nginx-light"), "-p", @folder, "-c", config, "-e", "stderr"]
      end

      private

      def settings
        <<~CONFIG
          daemon off;
          pid nginx.pid;
          worker_processes #{@workers};
          events { worker_connections 20000; }
          http {
            access_log off;
            #{temporary_folders}
            keepalive_requests 1000000000;
            default_type text/plain;
            server {
              listen 127.0.0.1:#{port}#{listen_options};
              location / { return 200 "Hello, world!"; }
            }
          }
        CONFIG
      end

      def temporary_folders
        %w[client_body proxy fastcgi uwsgi scgi].map { |name| "#{name}_temp_path #{name};" }.join(" ")
      end

      def listen_options = ""
    end

    # The same with deferred accept: a connection wakes it only when its request has arrived.
    class NginxDeferred < Nginx
      def label = "nginx, deferred"

      private

      def listen_options = " deferred"
    end
  end
end
