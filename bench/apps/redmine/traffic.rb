# frozen_string_literal: true

module Bench
  module RedmineApp
    # What clients ask of Redmine: anonymous, logged in, through the API, and now and then a change.
    module Traffic
      PROJECTS = %w[atlas beacon cedar delta ember fjord].freeze
      PAGES = ["Wiki", *Array.new(15) { |index| "Page_#{index + 1}" }].freeze
      ISSUES = 500
      USERS = 41
      PASSWORD = "correct horse"
      LOGINS = %w[admin user0 user1 user2 user3 user4 user5].freeze
      WRITES = 0.034 # of all requests
      WORDS = %w[invoice ticket gateway session parser storage].freeze
      PROJECT_PAGES = ["", "/issues", "/activity", "/roadmap", "/issues/gantt", "/issues/calendar", "/news", "/boards",
                       "/wiki/index", "/issues.csv", "/activity.atom", "/time_entries",
                       "/issues?set_filter=1&sort=priority:desc&group_by=status"].freeze

      ADMIN_PAGES = %w[/users /users/7 /admin/info /settings /roles /workflows/edit /projects/atlas/settings /groups
                       /trackers].freeze

      # A target: verb, path, headers, body (nil for none).
      Request = Struct.new(:verb, :path, :headers, :body)

      module_function

      # @param index [Integer] place of the user in LOGINS
      # @return [String] the key of the API
      def key(index) = format("%040x", 0xabcdef + index)

      # @param sessions [Array<String>] cookies, of the users in LOGINS
      # @return [Array<Request>]
      def targets(sessions)
        anonymous.map { |path| get(path) } + members(sessions) + api.each_with_index.map do |path, index|
          get(path, "X-Redmine-API-Key" => key(index % LOGINS.size))
        end
      end

      def get(path, headers = {}) = Request.new("GET", path, headers)

      def anonymous
        ["/", "/projects", "/issues", "/activity", "/news", "/issues?set_filter=1&sort=updated_on:desc&per_page=100",
         *PROJECTS.flat_map { |project| PROJECT_PAGES.map { |page| "/projects/#{project}#{page}" } },
         *PROJECTS.flat_map { |project| PAGES.first(8).map { |page| "/projects/#{project}/wiki/#{page}" } },
         *WORDS.map { |word| "/search?q=#{word}" }, *issues(8).map { |id| "/issues/#{id}" }]
      end

      def members(sessions)
        paths = ["/my/page", "/issues/%d", "/issues/%d/edit", "/issues?assigned_to_id=me&set_filter=1", "/my/account",
                 "/time_entries", *issues(11).map { |id| "/issues/#{id}" },
                 *PROJECTS.flat_map { |project| member_pages(project) }]
        admin, *others = sessions
        paths.each_with_index.map { |path, index| get(path, "Cookie" => others[index % others.size]) } +
          ADMIN_PAGES.map { |path| get(path, "Cookie" => admin) }
      end

      def member_pages(project)
        %w[/issues/new /wiki/Page_9 /wiki/Page_10/history /time_entries/report?criteria[]=user&columns=month]
          .map { |page| "/projects/#{project}#{page}" }
      end

      def api
        ["/issues.json", "/issues.json?sort=updated_on:desc&limit=50", "/projects.json", "/users/current.json",
         "/time_entries.json", "/issues/%d.json?include=journals,watchers", "/issues.xml?limit=25", "/trackers.json",
         *issues(23).map { |id| "/issues/#{id}.json?include=journals" },
         *PROJECTS.flat_map do |project|
           %w[.json /issues.json /memberships.json /versions.json /wiki/index.json /wiki/Page_11.json].map do |page|
             "/projects/#{project}#{page}"
           end
         end]
      end

      def write(verb, path, key, body, type: "application/json")
        Request.new(verb, path, { "X-Redmine-API-Key" => key, "Content-Type" => type }, body)
      end

      # Issues at even distances: each kind of request has some of its own.
      def issues(step) = (step..ISSUES).step(step).to_a

      # @return [Array<Request>]
      def writes
        PROJECTS.each_with_index.flat_map do |project, index|
          key = key(index % LOGINS.size)
          [write("POST", "/issues.json", key, %({"issue":{"project_id":"#{project}","subject":"New of the *lab*"}})),
           write("PUT", "/issues/%d.json", key, '{"issue":{"notes":"A note of the lab","done_ratio":50}}'),
           write("POST", "/uploads.json?filename=lab.txt", key, "lab " * 2000, type: "application/octet-stream")]
        end
      end
    end
  end
end
