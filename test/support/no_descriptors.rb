# frozen_string_literal: true

module Support
  # A process that may have no more descriptors. What it has stays open.
  module NoDescriptors
    private

    def without_free_descriptors
      limits = Process.getrlimit(:NOFILE)
      free = IO.sysopen(File::NULL).tap { |fd| IO.for_fd(fd).close }
      Process.setrlimit(:NOFILE, free, limits.last)
      yield
    ensure
      Process.setrlimit(:NOFILE, *limits)
    end
  end
end
