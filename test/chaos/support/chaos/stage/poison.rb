# frozen_string_literal: true

# Defects of a release that boots and becomes ready like any other but harms each request. Lives in the server under
# test.
class Poison
  KINDS = {
    "raises" => -> { raise "this release is sick" },
    "crashes" => -> { Process.kill("SEGV", Process.pid) && sleep },
    "burns" => lambda do
      deadline = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + 0.03
      nil while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < deadline
    end,
    "leaks" => -> { (@kept ||= []) << ("x" * 2_097_152) }
  }.freeze

  # @param kind [String] see KINDS
  def initialize(app, kind)
    @app = app
    @harm = KINDS.fetch(kind)
  end

  # The pool for some paths has no such release.
  def call(env)
    @harm.call unless env["PATH_INFO"].start_with?("/apart/")
    @app.call(env)
  end
end
