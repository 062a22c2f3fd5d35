# frozen_string_literal: true

require "fileutils"
require "support/servers"
require "support/waiting"

module Support
  # Servers whose job nodes process files in their folder, see test/fixtures/swarm/folder_runner.rb.
  module FolderJobs
    include Servers

    RUNNER = File.expand_path("../fixtures/swarm/folder_runner.rb", __dir__)

    # @param node [String] the `node` line without its block
    # @param config [String] further lines
    def swarm(node = "count: 2", config = "refork :manual", **options)
      text = "require #{RUNNER.inspect}\n#{config}\nnode(:folder, #{node}) { FolderRunner.new }"
      serve(command: "swarm", config: text, listen: false, **options)
    end

    # Moves the file into place at once, so that nobody sees half of it.
    def order(server, name, text = "0")
      %w[inbox new].each { |folder| FileUtils.mkdir_p(File.join(server.folder, folder)) }
      File.write(File.join(server.folder, "new", name), text)
      File.rename(File.join(server.folder, "new", name), File.join(server.folder, "inbox", name))
    end

    def jobs(server, folder)
      Dir.children(File.join(server.folder, folder)).sort
    rescue Errno::ENOENT
      []
    end

    def wait_for_jobs(server, folder, names, patience: 90)
      late = -> { "#{names - jobs(server, folder)} in #{folder}\n#{server.output}" }
      wait_until(timeout: patience, message: late) { (names - jobs(server, folder)).empty? }
    end
  end
end
