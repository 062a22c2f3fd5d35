# frozen_string_literal: true

require "open3"

module Support
  # A separate user id for a server, so that the kernel counts and limits its processes: RLIMIT_NPROC does not apply to
  # root, see setrlimit(2). It may still read what only root may read, so that the checkout and the gems need not be
  # readable for everybody.
  class LimitedUser
    CAPABILITY = "dac_override"
    # A user id without an account; a different one for each test process.
    FIRST_ID = 1_400_000_000

    # @param test [Minitest::Test] skipped if this machine cannot have such a user
    def self.for(test) = new.tap { |user| test.skip(user.obstacle) if user.obstacle }

    def initialize
      @id = FIRST_ID + Process.pid
    end

    # @return [String, nil] why this machine does not support it
    def obstacle
      return "only root can run a server as another user" unless Process.uid.zero?

      output, status = Open3.capture2e(*wrapper, "true")
      output unless status.success?
    rescue Errno::ENOENT => e
      e.message
    end

    # @return [Array<String>] a prefix for commands
    def wrapper
      ["setpriv", "--reuid=#{@id}", "--regid=#{@id}", "--clear-groups",
       "--inh-caps=-all,+#{CAPABILITY}", "--ambient-caps=-all,+#{CAPABILITY}"]
    end

    # From now on each fork of these processes fails with EAGAIN.
    def forbid_forks(processes) = limit(processes, nproc: 1)
    def allow_forks(processes) = limit(processes, nproc: 10_000)

    # From now on each new descriptor of theirs fails with EMFILE.
    def forbid_descriptors(processes) = limit(processes, nofile: 3)
    def allow_descriptors(processes) = limit(processes, nofile: 1024)

    private

    # The user may change the soft limit itself.
    def limit(processes, resource)
      flags = resource.map { |name, number| "--#{name}=#{number}:" }
      processes.each do |process|
        output, status = Open3.capture2e(*wrapper, "prlimit", "--pid=#{process.pid}", *flags)
        raise output unless status.success? || !File.exist?("/proc/#{process.pid}") # the process has ended meanwhile
      end
    end
  end
end
