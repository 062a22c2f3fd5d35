# frozen_string_literal: true

module Pando
  module CLI
    # Names the release of the application that a process runs: the folder that it works in, as the kernel sees it, and
    # the first line of the file REVISION there, which Capistrano and others write.
    #
    # @api private
    module Release
      FILE = "REVISION"
      # Bytes of that line.
      LONGEST = 64

      # @param pid [Integer, nil]
      # @return [String, nil] nil: there is no such process, or it may not be looked into
      def self.of(pid)
        folder = File.readlink("/proc/#{pid}/cwd").force_encoding("UTF-8").scrub("?") if pid
        folder && [folder, revision(pid)].compact.join(" at ")
      rescue SystemCallError
        nil
      end

      # In the file system of the process, which may be another one.
      def self.revision(pid)
        text = File.open("/proc/#{pid}/cwd/#{FILE}", File::RDONLY | File::NONBLOCK) { |file| file.read(LONGEST) }
        line = text.to_s.lines.first.to_s.force_encoding("UTF-8").scrub("?").gsub(/[^[:print:]]/, "").strip
        line unless line.empty?
      rescue SystemCallError
        nil
      end
      private_class_method :revision
    end
  end
end
