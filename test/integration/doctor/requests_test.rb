# frozen_string_literal: true

require "test_helper"
require "support/doctor_run"

# `pando doctor`: the requests that it sends, and what it makes of the responses.
class DoctorRequestsTest < Minitest::Test
  include Support::DoctorCase

  parallelize_me!

  def test_requests_of_a_file_reach_each_worker_of_each_generation
    write("requests", "/a\nPOST /b c=d\n::1 - - [x] \"GET /e HTTP/1.1\" 200 1\n")
    run = doctor(<<~RUBY, "--requests", "requests", "--reforks", "2", "--format", "json")
      run lambda { |env|
        body = env["rack.input"]&.read
        File.write("seen", "\#{env["REQUEST_METHOD"]} \#{env["PATH_INFO"]} \#{body} \#{Process.pid}\\n", mode: "a")
        [200, {}, []]
      }
    RUBY
    seen = File.readlines(File.join(@folder, "seen"), chomp: true)
    workers = run.report["generations"].flat_map { |one| one["workers"].map { |worker| worker["pid"] } }

    assert_equal([6, [0, 1, 2]], [workers.size, run.report["generations"].map { |one| one["number"] }])
    workers.each do |pid|
      assert_empty(["GET /a  #{pid}", "POST /b c=d #{pid}", "GET /e  #{pid}"] - seen)
    end
  end

  def test_a_line_that_is_no_request_is_told
    write("requests", "/a\nget /b\n")
    run = doctor(CLEAN, "--requests", "requests")

    assert_equal(0, run.status, run.err)
    assert_match(/^limited: 1 of 2 lines is not a request: line 2$/, run.out)
  end

  # Only middleware has run: nothing is known of the application.
  def test_requests_that_are_all_redirected_show_nothing
    write("requests", "/a\n/b\n/gone\n")
    app = "run ->(env) { env['PATH_INFO'] == '/gone' ? [404, {}, []] : [302, { 'location' => '/login' }, []] }"
    run = doctor(app, "--requests", "requests")
    outcome = "2 of 3 requests were redirected, 1 was answered with 404"

    assert_equal(3, run.status, run.err)
    assert_includes(run.out, "could not be done: requests: none was answered with 2xx: #{outcome}; " \
                             "a redirection leads to /login\n")
  end

  # Nobody has chosen it: an API may have no such page.
  def test_a_root_that_is_not_found_is_no_failure
    app = "run ->(_env) { [404, {}, []] }"
    run = doctor(app)

    assert_equal(0, run.status, run.out)
    assert_match(%r{^limited: .* GET / with 404.*--requests routes.*--requests FILE}, run.out)
    assert_equal({ "check" => "requests", "requests" => 0, "of" => 1 },
                 doctor(app, "--format", "json").report["limits"].first)
    write("requests", "/\n")
    assert_equal(3, doctor(app, "--requests", "requests").status)
  end

  def test_requests_that_are_redirected_are_told
    app = "run ->(env) { env['PATH_INFO'] == '/a' ? [200, {}, []] : [302, { 'location' => '/login' }, []] }"
    write("requests", "/a\n/b\n")
    run = doctor(app, "--requests", "requests", "--format", "json")
    text = doctor(app, "--requests", "requests").out

    assert_equal([0, { "200" => 1, "302" => 1 }], [run.status, run.report["statuses"]])
    assert_match(%r{^responses: 1 of 2 requests was redirected; a redirection leads to /login$}, text)
  end

  def test_headers_reach_the_application
    app = "run ->(env) { env['HTTP_COOKIE'] == 'a=b' ? [200, {}, []] : [302, { 'location' => '/login' }, []] }"

    assert_equal([3, 0], [doctor(app), doctor(app, "--header", "Cookie: a=b")].map(&:status))
  end

  # As behind a TLS proxy.
  def test_an_application_that_insists_on_tls_is_served
    write("requests", "/a\n/b\n/up\n")
    app = <<~RUBY
      run lambda { |env|
        path = env["PATH_INFO"]
        next [301, { "location" => "https://localhost\#{path}" }, []] if path != "/up" && env["HTTP_X_FORWARDED_PROTO"] != "https"

        [200, {}, []]
      }
    RUBY
    run = doctor(app, "--requests", "requests")

    assert_equal(0, run.status, run.out)
    assert_match(/^2 requests had the header X-Forwarded-Proto: https, since the app.* redirects plain HTTP$/, run.out)
    assert_equal({ "200" => 3 }, doctor(app, "--requests", "requests", "--format", "json").report["statuses"])
  end

  # With the user's own header the second request would be the first one again.
  def test_requests_that_name_their_protocol_are_not_sent_over_tls
    app = "run ->(env) { [301, { 'location' => \"https://localhost\#{env['PATH_INFO']}\" }, []] }"
    run = doctor(app, "--header", "X-Forwarded-Proto: http")

    assert_equal(3, run.status, run.out)
    assert_includes(run.out, "1 of 1 request was redirected")
    refute_includes(run.out, "X-Forwarded-Proto: https")
  end
end
