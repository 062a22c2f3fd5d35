# frozen_string_literal: true

require "json"
require "support/lab/traffic"
require_relative "../../apps/rails/jobs"

module Bench
  module Swarm
    # The jobs in a fixed order, which follows from the seed: everybody gets the same ones. Which class comes next
    # follows Zipf's law.
    class Jobs
      CLASSES = RailsApp::Jobs.classes

      # @!attribute number [Integer] from 0
      # @!attribute place [Integer] of its class in the mix
      # @!attribute row [Integer] what it is given
      Job = Struct.new(:number, :place, :row) do
        def name = CLASSES[place]
        def id = format("%024x", number)

        # @return [Hash] as Active Job serializes it
        def to_active
          { "job_class" => name, "job_id" => id, "provider_job_id" => nil, "queue_name" => "default",
            "priority" => nil, "arguments" => [row], "executions" => 0, "exception_executions" => {},
            "locale" => "en", "timezone" => "UTC", "enqueued_at" => "2026-01-01T00:00:00Z" }
        end

        # @return [String] as its adapter for Sidekiq writes it down
        def to_sidekiq
          now = Process.clock_gettime(Process::CLOCK_REALTIME, :millisecond)
          JSON.generate("class" => "Sidekiq::ActiveJob::Wrapper", "wrapped" => name, "queue" => "default",
                        "args" => [to_active], "retry" => false, "jid" => id, "created_at" => now,
                        "enqueued_at" => now, "place" => place)
        end
      end

      # So many of them, to be looked up by their number: in those processes that are given only that.
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
