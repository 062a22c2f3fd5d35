# frozen_string_literal: true

require "test_helper"
require "open3"
require "support/admin_client"
require "support/browser"
require "support/folder_jobs"
require "support/servers"

# Promise: the dashboard shows in a browser what the server does while it happens, and takes commands.
class DashboardTest < Minitest::Test
  include Support::Servers
  include Support::FolderJobs

  CONFIG = "workers 2\nrefork :manual\ncontrol \"control.sock\"\n"
  TABLE = "document.querySelector('#reforks').innerText"

  def setup
    missing = Support::Browser.missing
    skip missing if missing
    super
  end

  def teardown
    @browser&.quit
    super
  end

  # @return [String] the URL that `pando dashboard` prints
  def start(setting = "", app: nil)
    @port = free_port
    config = "#{CONFIG}admin \"127.0.0.1:#{@port}\"\n#{setting}"
    @server = serve(config: config, **{ app: app }.compact)
    @admin = Support::AdminClient.new(@server, @port)
    @server.wait_past("admin.ready")
    url, = Open3.capture2(*Support::Checkout.pando("dashboard", "-c", "pando.rb"), chdir: @server.folder)
    assert_equal("http://127.0.0.1:#{@port}/dashboard#token=#{@admin.token}\n", url)
    url.chomp
  end

  def visit(url)
    open_page(url)
    wait_until { @browser.text.include?("live") && @browser.text.include?("worker 1") }
  end

  def open_page(url)
    @browser = Support::Browser.new
    @browser.open(url)
  end

  def connection = @browser.evaluate("document.querySelector('.connection')?.innerText")

  def test_it_follows_a_refork_and_takes_commands
    visit(start)
    refute_includes(@browser.evaluate("location.href"), @admin.token)
    20.times { @server.get("/") }
    assert_includes(@browser.text, "Generation 0")

    @browser.press("Refork")
    @browser.confirm
    @server.wait_past("refork.finished")
    wait_until { @browser.text.include?("Generation 1") && !@browser.text.include?("Generation 0") }
    assert_match(/refork to generation 1 from worker \d, after \d+ requests/, wait_until do
      @browser.evaluate(TABLE)[/^.*refork to generation 1.*$/]
    end)
    assert_includes(@browser.evaluate("document.querySelector('#events').innerText"), "worker.ready")

    assert_equal("2", scale_dialog.last)
    @browser.evaluate("document.querySelector('dialog input[name=workers]').value = '3'")
    @browser.confirm
    wait_until { @browser.text.include?("worker 2") }
    assert_equal("live", connection)
    assert_empty(@browser.complaints)
  end

  # Two pools: one serves requests in direct mode, the other does jobs.
  def test_job_nodes_beside_workers_without_a_reactor
    visit(start("reactor false\nrequire #{RUNNER.inspect}\nnode(:folder, count: 2) { FolderRunner.new }"))
    refute_includes(@browser.text, "reactor")
    assert_match(/^folder\t2 of 2\t0\t\S.*\t0\t0$/, wait_until { jobs_table[/^folder\t2 of 2.*/] })
    order(@server, "one", "0.01")
    wait_for_jobs(@server, "done", %w[one])

    wait_until { jobs_table.match?(/^folder\t2 of 2\t0\t\S.*\t1\t0$/) }
    wait_until { @browser.text.match?(/Generation 0 of folder.*?Memory: [\d.]+ MiB private, [\d.]+ MiB shared/m) }
    assert_empty(@browser.complaints)
  end

  def jobs_table = @browser.evaluate("document.querySelector('#jobs')?.innerText") || ""

  def test_scale_begins_with_the_number_of_the_chosen_pool
    visit(start("require #{RUNNER.inspect}\nnode(:folder, count: 1) { FolderRunner.new }"))
    assert_equal(["Scale (web)", "2"], scale_dialog)
    @browser.click("document.querySelector('dialog button[type=button]')")
    wait_until { @browser.evaluate("!document.querySelector('dialog')") }
    @browser.evaluate("(() => { const choice = [...document.querySelectorAll('.choices select')].at(-1); " \
                      "choice.value = 'folder'; choice.dispatchEvent(new Event('change', { bubbles: true })); })()")
    wait_until { @browser.text.match?(/busy workers\s+\d of 1/i) }

    assert_equal(["Scale (folder)", "1"], scale_dialog)
  end

  # @return [Array(String, String)] the title, and the number that it proposes
  def scale_dialog
    @browser.press("Scale")
    wait_until { @browser.evaluate("Boolean(document.querySelector('dialog[open] input[name=workers]'))") }
    @browser.evaluate("[document.querySelector('dialog h2').innerText, document.querySelector('dialog input').value]")
  end

  def test_a_worker_shows_where_it_stands_and_is_killed
    visit(start)
    victim = @server.workers.find { |one| one.title.start_with?("pando worker 0 ") }.pid
    @browser.click("[...document.querySelectorAll('.tile')].find((one) => one.innerText.startsWith('worker 0'))")
    @browser.press("Stack now")
    stack = wait_until { @browser.evaluate("document.querySelector('.details pre')?.innerText") }
    assert_match(/\Aworker in slot 0 \(pid #{victim}, generation 0\) is idle\.\nmain thread:\n    \S+/, stack)
    assert_empty(@browser.inaccessible)
    @browser.press("Kill")
    assert_includes(wait_until { @browser.evaluate("document.querySelector('dialog[open] h2')?.innerText") },
                    "Kill worker 0 (pid #{victim})")
    assert_empty(@browser.inaccessible)
    killed = @server.wait_for("worker.killed") { @browser.confirm }

    assert_equal([0, "pando kill: signal KILL"], killed.values_at("slot", "reason"))
    wait_until { (pids = @server.workers.map(&:pid)).size == 2 && !pids.include?(victim) }
    assert_empty(@browser.complaints)
  end

  def test_it_comes_back_when_the_admin_process_is_killed_and_knows_the_past
    visit(start)
    @server.refork
    20.times { @server.get("/") }
    wait_until { JSON.parse(@admin.get("/history.json").body)["hour"].size >= 2 }
    @server.wait_for("admin.ready") { Process.kill("KILL", @admin.pid) }
    wait_until { connection == "live" }

    past = JSON.parse(@admin.get("/history.json").body)
    assert_operator(past["hour"].size, :>=, 2)
    assert_includes(past["events"].map { |event| event["event"] }, "refork.finished")
    @server.refork
    wait_until { @browser.evaluate(TABLE).scan("refork to generation").size == 2 }
  end

  def test_a_page_that_is_opened_while_the_monitor_is_silent_goes_on_with_it
    url = start("slow_log 2, \"slow.log\"\n")
    @server.signal("STOP")
    open_page(url)
    wait_until { @browser.text.include?("the monitor does not answer") }
    @server.signal("CONT")

    wait_until { connection == "live" }
    wait_until { @browser.text.include?("No request has been slow.") }
  ensure
    @server.signal("CONT")
  end

  def test_the_end_of_a_slow_request_is_shown_although_the_monitor_was_silent_when_the_page_asked
    visit(start("slow_log 0.5, \"slow.log\"\n",
                app: "run ->(_env) { sleep(0.01) until File.exist?('go'); [200, {}, []] }"))
    slow = Thread.new { @server.get("/report") }
    wait_until { took&.start_with?("runs") }
    @server.signal("STOP")
    before = @browser.asked("/slow")
    wait_until { @browser.asked("/slow") >= before + 2 } # it goes on after one that was refused
    @server.write("go", "")
    @server.signal("CONT")
    slow.join

    wait_until { took.end_with?("s, 200") }
  ensure
    @server.signal("CONT")
  end

  def took = @browser.evaluate("document.querySelector('#slow td.number')?.innerText")

  # A browser has six connections to a server, and the server has 16 for all that follow it.
  def test_tries_that_fail_leave_no_connection_behind
    visit(start)
    @browser.block("*/history.json")
    @server.wait_for("admin.ready") { Process.kill("KILL", @admin.pid) }
    wait_until { @browser.asked("/live") >= 10 }
    @browser.block

    wait_until { connection == "live" }
  end

  def test_slow_requests_are_shown_with_the_line_where_they_stand
    folder = Dir.mktmpdir("pando-slow")
    visit(start("slow_log 1, #{File.join(folder, "slow.log").inspect}\n",
                app: "run ->(_env) { sleep(0.01) until File.exist?('go'); [200, {}, []] }"))
    slow = Thread.new { @server.get("/report?secret=1") }
    @server.wait_past("request.slow")
    @server.write("go", "")
    slow.join

    shown = wait_until { @browser.evaluate("document.querySelector('#slow').innerText")[/GET.*config\.ru:\d+/m] }
    assert_includes(shown, "GET /report")
    wait_until { took.end_with?("s, 200") }
    @browser.evaluate("document.querySelector('#slow button').click()")
    stacks = wait_until { @browser.evaluate("document.querySelector('#slow pre')?.innerText") }
    assert_match(%r{ path=/report .*\n {4}\S*config\.ru:1:in .*\n {4}\S}, stacks)
    assert_empty(@browser.inaccessible)
    refute_includes(@browser.text, "secret")
  ensure
    FileUtils.rm_rf(folder)
  end

  def test_it_is_accessible_in_light_and_dark_on_a_desktop_and_on_a_phone
    visit(start)
    @server.refork
    wait_until { @browser.text.include?("refork to generation 1") }
    %w[light dark].product([[1280, 900], [360, 740]]) do |scheme, (width, height)|
      @browser.prefer(scheme)
      @browser.resize(width, height)
      assert_empty(@browser.inaccessible, "#{scheme}, #{width} pixels wide")
      assert_operator(@browser.evaluate("document.documentElement.scrollWidth"), :<=, width)
    end
    assert_empty(@browser.complaints)
  end

  # The admin process keeps as many of each (History::EVENTS).
  def test_a_page_that_stays_open_remembers_reforks_beside_many_other_events
    visit(start)
    @browser.evaluate("(async () => { const { Follower } = await import('/dashboard/server.js'); " \
                      "window.follower = new Follower(() => {}); })()")
    hear("refork.finished")
    401.times.each_slice(50) { |numbers| hear(*numbers.map { "worker.ready" }) }
    assert_equal({ "refork.finished" => 1, "worker.ready" => 200 }, remembered)

    @browser.evaluate("follower.state = { ...follower.state, ...follower.joined({ hour: [], day: [], events: " \
                      "[{ event: 'reload.finished', time: '2031-05-04T12:00:00Z' }] }) }")
    assert_equal({ "refork.finished" => 1, "worker.ready" => 200, "reload.finished" => 1 }, remembered)
  end

  def hear(*events)
    messages = events.map { |event| "data: #{JSON.generate("event" => event, "time" => next_time)}" }
    @browser.evaluate("follower.hear(#{JSON.generate(messages)})")
  end

  def next_time = (@time = (@time || Time.utc(2031, 5, 3)) + 1).strftime("%FT%TZ")
  def remembered = @browser.evaluate("follower.state.events.map((one) => one.event)").tally

  def test_times_of_other_days_have_a_date
    visit(start)
    today, other = @browser.evaluate("await import('/dashboard/words.js').then(({ moment }) => " \
                                     "[Date.now(), Date.parse('2031-05-04T12:00:00')].map((ms) => moment(ms / 1000)))")

    assert_match(/\A\d\d:\d\d:\d\d\z/, today)
    assert_equal("4 May 12:00:00", other)
  end

  # Should a text ever be taken for HTML, the browser runs no code of it.
  def test_the_page_runs_no_other_code
    start
    policy = @admin.get("/dashboard")["content-security-policy"]

    assert_includes(policy, "default-src 'none'; script-src 'self';")
    refute_match(/unsafe|\*|http/, policy)
    refute_includes(@admin.get("/").body, "vendor")
  end

  # Everybody may load the page, which holds nothing; at an address for other machines its data needs the token.
  def test_without_the_token_the_page_asks_for_it
    @port = free_port
    @server = serve(config: "#{CONFIG}admin \"0.0.0.0:#{@port}\"\n")
    @admin = Support::AdminClient.new(@server, @port)
    @server.wait_past("admin.ready")
    @browser = Support::Browser.new
    @browser.open("http://127.0.0.1:#{@port}/dashboard")
    wait_until { @browser.text.include?("Token") }
    assert_equal("401", @admin.get("/history.json").code)
    assert_equal("401", @admin.get("/live").code)

    @browser.evaluate("document.querySelector('input[name=token]').value = #{@admin.token.inspect}")
    @browser.click("document.querySelector('form button.primary')")
    wait_until { @browser.text.include?("worker 1") }
  end
end
