# frozen_string_literal: true

require "json"
require "support/lab/traffic"
require_relative "../../apps/rails/jobs"

module Bench
  module Swarm
    # The jobs in a fixed order, which follows from the seed, so that every contestant gets the same. Their classes
    # follow Zipf's law.
    class Jobs
      CLASSES = RailsApp::Jobs.classes

      # @!attribute number [Integer] from 0
      # @!attribute place [Integer] index of its class in the mix
      # @!attribute row [Integer] its argument
      Job = Struct.new(:number, :place, :row) do
        def name = CLASSES[place]
        def id = format("%024x", number)

        # @return [Hash] as Active Job serializes it
        def to_active
          { "job_class" => name, "job_id" => id, "provider_job_id" => nil, "queue_name" => "default",
            "priority" => nil, "arguments" => [row], "executions" => 0, "exception_executions" => {},
            "locale" => "en", "timezone" => "UTC", "enqueued_at" => "2026-01-01T00:00:00Z" }
        end

        # @return [String] in the format of its adapter for Sidekiq
        def to_sidekiq
          now = Process.clock_gettime(Process::CLOCK_REALTIME, :millisecond)
          JSON.generate("class" => "Sidekiq::ActiveJob::Wrapper", "wrapped" => name, "queue" => "default",
                        "args" => [to_active], "retry" => false, "jid" => id, "created_at" => now,
                        "enqueued_at" => now, "place" => place)
        end
      end

      # The first jobs, to look up by number, for processes that get only that.
      class Table
        def initialize(seed, size)
          @size = size
          @bytes = Jobs.new(seed).take(size).flat_map { |job| [job.place, job.row] }.pack("C*")
        end

        # @return [Job]
        def at(number)
          index = number % @size * 2
          Job.new(number, @bytes.getbyte(index), @bytes.getbyte(index + 1))
        end
      end

      attr_reader :seed

      def initialize(seed)
        @seed = seed
        @traffic = Lab::Traffic.new(CLASSES.map { |name| [name, "%d"] }, seed: seed)
        @count = 0
      end

      # @return [Array<Job>] the next ones
      def take(count)
        Array.new(count) do
          place, row = @traffic.next
          Job.new((@count += 1) - 1, place, row.to_i)
        end
      end
    end
  end
end
