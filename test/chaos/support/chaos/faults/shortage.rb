# frozen_string_literal: true

module Chaos
  module Faults
    # For a while, the kernel refuses a resource to a process because of a limit.
    class Shortage < Fault
      def self.plan(random)
        { "role" => self::ROLES.sample(random: random), "pick" => random.rand.round(3),
          "seconds" => (0.3 + (random.rand * 2)).round(2) }
      end

      def self.obstacle(_stage) = ("there is no prlimit(1)" unless system("which prlimit", out: File::NULL))

      def name = "#{super} #{plan["role"]}"
      def failures = self.class::FAILURES.fetch(plan["role"], [])

      def inject
        @lowered = victims.filter_map do |pid|
          low = limit(pid) or next
          before = scene.limits.lower(pid, self.class::LIMIT, low)
          [low, before] if before
        end
        trouble if @lowered.any?
        @lowered.any?
      end

      def lift
        @lowered.to_a.uniq.each { |low, before| scene.limits.raise_again(self.class::LIMIT, low, before) }
      end

      private

      def victims = [plan["role"] == "monitor" ? stage.pid : victim&.pid].compact

      # Triggers an operation that hits the limit.
      def trouble
        return if plan["role"] == "reactor"

        other = victim(worker_role) or return
        signal(other.pid, "KILL") unless plan["role"] == worker_role
      end
    end

    # EAGAIN on fork, as in a container that has used up its processes.
    class ForksRefused < Shortage
      named "forks refused", weight: 6, evidence: /\A(fork|spawn)\.failed\z/

      ROLES = %w[all].freeze
      FAILURES = {}.freeze
      LIMIT = "nproc"

      private

      def victims = [stage.pid, *roll&.pids]
      def limit(_pid) = 1
    end

    # ENOMEM: the process gets no further page.
    class NoMemory < Shortage
      named "no memory", weight: 6, evidence: /\A(worker\.(lost|failed)|requests\.shed|mold\.lost|request\.failed)\z/

      ROLES = %w[worker worker reactor mold service].freeze
      LIMIT = "as"

      # If the reactor cannot buffer the part of a response that a client has not read yet, it resets the connection.
      FAILURES = { "reactor" => [503, :closed, :cut], "worker" => [500, 502, :cut],
                   "mold" => [500, 502, :cut] }.freeze

      private

      def limit(pid)
        File.read("/proc/#{pid}/status")[/^VmSize:\s+(\d+)/, 1].to_i * 1024
      rescue SystemCallError
        nil
      end
    end

    # EMFILE: the process gets no further descriptor.
    class NoDescriptors < Shortage
      named "no descriptors", weight: 6, evidence: /\A(spawn|fork|accept)\.failed\z|\Arequests\.shed\z/

      ROLES = %w[monitor monitor reactor reactor worker mold].freeze
      LIMIT = "nofile"

      # The reactor closes idle keep-alive connections to make room, while a client may just be sending a request. If a
      # worker cannot receive its client's socket, for a body that it reads itself, the connection is closed.
      FAILURES = { "reactor" => [503, :closed], "worker" => [500, 502, :cut, :closed],
                   "mold" => [500, 502, :cut, :closed] }.freeze

      private

      # The limit is on the highest number, not on the count, so that many free numbers lie below it.
      def limit(pid)
        used = Dir.children("/proc/#{pid}/fd").map(&:to_i)
        ((0..(used.size + 3)).to_a - used)[(plan["pick"] * 4).to_i]
      rescue SystemCallError
        nil
      end
    end

    # ENOSPC in the folder for large bodies.
    class FullDisk < Fault
      named "full disk", weight: 5, evidence: /\Arequests\.shed\z/

      def self.plan(random) = { "seconds" => (0.5 + (random.rand * 2.5)).round(2) }
      def self.obstacle(stage) = ("no file system can be mounted here" unless stage.disk?)

      def failures = [503]

      def inject
        File.open(ballast, "wb") do |file|
          loop { file.syswrite("x" * 65_536) }
        end
      rescue Errno::ENOSPC
        true
      end

      def lift = File.unlink(ballast)

      private

      def ballast = File.join(stage.disk, "ballast")
    end
  end
end
