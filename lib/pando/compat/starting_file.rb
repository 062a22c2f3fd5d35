# frozen_string_literal: true

require "pando/compat/lock_file"

module Pando
  module Compat
    # The config file that `pando init` writes if there is none of another server: the settings that most applications
    # want to change, with the defaults as comments.
    module StartingFile
      HEAD = <<~RUBY
        # The configuration of Pando. Every setting is optional: `pando config` shows those that hold and where each
        # comes from, docs/configuration.md explains them.

        # Where to listen. Without a line: on all addresses at the port that PORT names, else at 127.0.0.1:8080. For a
        # Rails app that is 0.0.0.0:3000, and 127.0.0.1:3000 in development.
        # listen "0.0.0.0:8080"

        # A worker serves one request at a time. Without a line there are as many as WEB_CONCURRENCY says, else one for
        # each CPU, or fewer if memory is short; in development one.
        # workers 4

        # A request that takes longer is ended with Pando::RequestTimeout; 2 seconds later its worker is killed.
        # timeout 20, grace: 2

        # A worker with more private memory is replaced between two requests.
        # memory worker: 512.mb

        # When a warm worker becomes the mold of the next generation: by what is measured, or after: [500, 1000].
        # refork :auto

        # A worker answers this request before it takes traffic.
        # self_test "GET /up"
      RUBY

      JOBS = <<~RUBY

        # Background jobs beside the workers: config/queue.yml and config/recurring.yml say which, as for bin/jobs.
        # node :solid_queue, queue_file: true, shared: true, require: "./config/environment.rb"
      RUBY

      SIDEKIQ = <<~RUBY

        # Background jobs beside the workers (docs/swarm.md).
        # node :sidekiq, concurrency: 5, queues: %w[default], shared: true, require: "./config/environment.rb"
      RUBY

      def self.text(directory, env)
        jobs = JOBS if LockFile.names?(directory, "solid_queue", env: env)
        sidekiq = SIDEKIQ if LockFile.names?(directory, "sidekiq", env: env)
        [HEAD, jobs, sidekiq].join
      end
    end
  end
end
